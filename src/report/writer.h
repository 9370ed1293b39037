/* SPDX-License-Identifier: Apache-2.0
 * One value after the other, as a pickle or as JSON: the same calls write either.
 *
 *      dict, key, value, key, value ..., end       list, value, value ..., end
 *
 * The pickle is protocol 4 as the viewer in the browser reads it: no frames, no opcode that its
 * unpickler lacks, integers of at most 8 bytes, lists appended to in short pieces. A value that comes
 * again is written once and then named: gr_writer_remember gives its name, gr_writer_recall writes it.
 * Words and keys, which live as long as the program, are remembered by themselves.
 *
 * Text is UTF-8; a byte that is not part of any becomes U+FFFD. No locks. */
#ifndef GR_REPORT_WRITER_H
#define GR_REPORT_WRITER_H

#include <granary/granary.h>

#include "base/sink.h"

enum { GR_WRITER_DEPTH = 16, GR_WRITER_WORDS = 512 };

struct gr_writer {
    struct gr_sink *sink;
    enum granary_format format;
    uint32_t names; /* given out */
    unsigned depth;
    struct {
        bool list;
        uint32_t count; /* values written: keys, in a dict */
    } level[GR_WRITER_DEPTH];
    struct {
        const char *word;
        uint32_t name;
    } known[GR_WRITER_WORDS]; /* by address of the literal */
    unsigned words;
};

/* The writer is zeroed. */
void gr_writer_begin(struct gr_writer *w, struct gr_sink *sink, enum granary_format format);
void gr_writer_finish(struct gr_writer *w);

void gr_writer_dict(struct gr_writer *w);
void gr_writer_list(struct gr_writer *w);
void gr_writer_end(struct gr_writer *w);
void gr_writer_key(struct gr_writer *w, const char *literal);

void gr_writer_int(struct gr_writer *w, int64_t value);
void gr_writer_bool(struct gr_writer *w, bool value);
void gr_writer_real(struct gr_writer *w, double value);
void gr_writer_none(struct gr_writer *w);
void gr_writer_pair(struct gr_writer *w, int64_t first, int64_t second); /* a tuple */
void gr_writer_word(struct gr_writer *w, const char *literal);
void gr_writer_text(struct gr_writer *w, const char *text);

/* Pickle only: the value just written gets a name, from 1 on; and is written again. */
uint32_t gr_writer_remember(struct gr_writer *w);
void gr_writer_recall(struct gr_writer *w, uint32_t name);

/* Key and value. */
static inline void gr_writer_put_int(struct gr_writer *w, const char *key, int64_t value) {
    gr_writer_key(w, key);
    gr_writer_int(w, value);
}
static inline void gr_writer_put_bool(struct gr_writer *w, const char *key, bool value) {
    gr_writer_key(w, key);
    gr_writer_bool(w, value);
}
static inline void gr_writer_put_word(struct gr_writer *w, const char *key, const char *literal) {
    gr_writer_key(w, key);
    gr_writer_word(w, literal);
}
static inline void gr_writer_put_text(struct gr_writer *w, const char *key, const char *text) {
    gr_writer_key(w, key);
    gr_writer_text(w, text);
}

#endif
