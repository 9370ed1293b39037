/* SPDX-License-Identifier: Apache-2.0
 * Who asks: the calling thread's stack, tag and metadata, as numbers that fit into an event.
 *
 *      stack     C frames, innermost first, then Python frames      interned word by word
 *      tag       what the thread says that it is doing               interned
 *      metadata  a longer text of the thread's own                   interned
 *      label     stack and tag in 32 bits: what a live block keeps
 *
 * A call that is to be recorded notes its stack before it takes any lock (gr_stacks_enter), in the
 * thread's own note; the ledger's verbs read it there, and it is gone when the call returns. Tags and
 * metadata belong to the thread, for all handles.
 *
 * Locks: those of the interned tables, which are leaves; enter none but these, and Python's (python.h). */
#ifndef GR_LEDGER_STACKS_H
#define GR_LEDGER_STACKS_H

#include <granary/history.h>

#include "base/intern.h"
#include "base/python.h"
#include "base/unwind.h"

enum {
    GR_STACK_FRAMES = 64,     /* of each language, at most */
    GR_LABEL_STACK_BITS = 20, /* of a label; the rest is the tag */
    GR_STACKS_MOST = (1 << GR_LABEL_STACK_BITS) - 1,
    GR_TAGS_MOST = (1 << (32 - GR_LABEL_STACK_BITS)) - 1
};

/* A word of a stack: the return address of a C frame, or this bit and the number of a Python frame. */
#define GR_STACK_PYTHON ((uint64_t)1 << 63)

struct gr_stacks {
    struct gr_unwind unwind;
    struct gr_python python;
    struct gr_intern stacks, tags, texts, python_frames;
    struct gr_intern
        places; /* return address -> what it is called, once somebody has asked (report/frames.h) */
    atomic_uint_fast64_t lost; /* stacks and texts that found no room */
};

/* Looks for what can tell stacks in this process, too. */
void gr_stacks_init(struct gr_stacks *stacks);
void gr_stacks_fini(struct gr_stacks *stacks);

static inline uint32_t gr_label(uint32_t stack, uint32_t tag) {
    return stack | tag << GR_LABEL_STACK_BITS;
}
static inline uint32_t gr_label_stack(uint32_t label) {
    return label & (uint32_t)GR_STACKS_MOST;
}
static inline uint32_t gr_label_tag(uint32_t label) {
    return label >> GR_LABEL_STACK_BITS;
}

/* What is known of a call. */
struct gr_note {
    const struct gr_stacks *of; /* whose numbers these are: the thread may be in calls on several handles */
    uint32_t label, metadata;
};

/* What a thread says about itself, and the note of the recorded call that it is in. A thread's own
 * state, not the library's; changed by the functions below only. */
struct gr_self {
    struct gr_note note;
    bool said; /* it has a tag or metadata, or is in a call already */
    char tag[GRANARY_TAG_ROOM];
    char metadata[GRANARY_METADATA_ROOM];
};
extern _Thread_local struct gr_self gr_stacks_self __attribute__((visibility("hidden")));

/* There is something to note of a call of the thread, stacks apart. */
GR_MUST static inline bool gr_stacks_said(void) {
    return gr_stacks_self.said;
}
/* A call begins that events may be told of: its note is made. sources: GRANARY_STACKS_*, of which the
 * stack is taken; caller: the address that the public function returns to. Returns the note of the call
 * that this one is made in (by a callback), which leave puts back. */
GR_MUST struct gr_note gr_stacks_enter(struct gr_stacks *stacks, int sources, const void *caller);
void gr_stacks_leave(struct gr_note before);

/* The note of the call under way on this handle; all 0 outside of one. */
static inline struct gr_note gr_stacks_note(const struct gr_stacks *stacks) {
    const struct gr_note *note = &gr_stacks_self.note;
    return note->of == stacks ? *note : (struct gr_note){0};
}

/* The number of a text; 0 for the empty one, or when there is no room. */
uint32_t gr_stacks_text(struct gr_stacks *stacks, const char *text);
/* The text of a number of a table, cut to fit; "" for 0. Returns buffer. */
const char *gr_stacks_word(const struct gr_intern *table, uint32_t number, char *buffer, size_t room);

/* Of the calling thread, for all handles: INVALID when it is too long. previous may be NULL. */
GR_MUST int gr_stacks_set_tag(const char *tag, char previous[GRANARY_TAG_ROOM]);
GR_MUST int gr_stacks_set_metadata(const char *text, char previous[GRANARY_METADATA_ROOM]);

#endif
