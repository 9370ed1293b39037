/* SPDX-License-Identifier: Apache-2.0
 * Values as a pickle or as JSON. */
#include "report/writer.h"

#include <stdio.h>

#include "base/check.h"

enum { PIECE = 1000 }; /* values appended at once: the viewer passes them as arguments of a call */

/* Opcodes of pickle protocol 4. */
enum {
    MARK = '(',
    STOP = '.',
    BININT = 'J',
    BININT1 = 'K',
    BININT2 = 'M',
    NONE = 'N',
    BINFLOAT = 'G',
    BINUNICODE = 'X',
    BINGET = 'h',
    LONG_BINGET = 'j',
    EMPTY_LIST = ']',
    APPENDS = 'e',
    EMPTY_DICT = '}',
    SETITEMS = 'u',
    PROTO = 0x80,
    TUPLE2 = 0x86,
    NEWTRUE = 0x88,
    NEWFALSE = 0x89,
    LONG1 = 0x8a,
    SHORT_BINUNICODE = 0x8c,
    MEMOIZE = 0x94
};

static bool pickles(const struct gr_writer *w) {
    return w->format == GRANARY_PICKLE;
}

static void byte(struct gr_writer *w, int value) {
    gr_sink_byte(w->sink, (unsigned char)value);
}

/* The low bytes, lowest first. */
static void little(struct gr_writer *w, uint64_t value, unsigned bytes) {
    for (; bytes > 0; bytes--, value >>= 8) byte(w, (int)(value & 0xFF));
}

/* ---- structure ------------------------------------------------------------------------------ */

/* What stands between a value and the one before it. */
static void separate(struct gr_writer *w) {
    if (w->depth == 0) return;
    uint32_t count = w->level[w->depth - 1].count;
    if (!w->level[w->depth - 1].list) return; /* the key has done it */
    w->level[w->depth - 1].count++;
    if (!pickles(w)) {
        if (count > 0) byte(w, ',');
    } else if (count > 0 && count % PIECE == 0) {
        byte(w, APPENDS);
        byte(w, MARK);
    }
}

static void open_level(struct gr_writer *w, bool list) {
    separate(w);
    if (pickles(w)) {
        byte(w, list ? EMPTY_LIST : EMPTY_DICT);
        byte(w, MARK);
    } else {
        bool line = !list && w->depth > 0 && w->level[w->depth - 1].list;
        if (line) byte(w, '\n');
        byte(w, list ? '[' : '{');
    }
    GR_ASSERT(w->depth < GR_WRITER_DEPTH, "W1");
    w->level[w->depth].list = list;
    w->level[w->depth++].count = 0;
}

void gr_writer_dict(struct gr_writer *w) {
    open_level(w, false);
}

void gr_writer_list(struct gr_writer *w) {
    open_level(w, true);
}

void gr_writer_end(struct gr_writer *w) {
    GR_ASSERT(w->depth > 0, "W1");
    bool list = w->level[--w->depth].list;
    if (pickles(w))
        byte(w, list ? APPENDS : SETITEMS);
    else
        byte(w, list ? ']' : '}');
}

void gr_writer_begin(struct gr_writer *w, struct gr_sink *sink, enum granary_format format) {
    w->sink = sink;
    w->format = format;
    if (!pickles(w)) return;
    byte(w, PROTO);
    byte(w, 4);
}

void gr_writer_finish(struct gr_writer *w) {
    byte(w, pickles(w) ? STOP : '\n');
}

/* ---- numbers -------------------------------------------------------------------------------- */

static void write_decimal(struct gr_writer *w, int64_t value) {
    char digits[20];
    size_t at = sizeof(digits);
    uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;
    do {
        digits[--at] = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (value < 0) byte(w, '-');
    gr_sink_put(w->sink, digits + at, sizeof(digits) - at);
}

void gr_writer_int(struct gr_writer *w, int64_t value) {
    separate(w);
    if (!pickles(w)) {
        write_decimal(w, value);
    } else if (value >= 0 && value < 1 << 8) {
        byte(w, BININT1);
        little(w, (uint64_t)value, 1);
    } else if (value >= 0 && value < 1 << 16) {
        byte(w, BININT2);
        little(w, (uint64_t)value, 2);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
        byte(w, BININT);
        little(w, (uint64_t)value, 4);
    } else {
        unsigned bytes = 8; /* without the leading ones that only repeat the sign */
        while (value >> (8 * (bytes - 1) - 1) == (value < 0 ? -1 : 0)) bytes--;
        byte(w, LONG1);
        byte(w, (int)bytes);
        little(w, (uint64_t)value, bytes);
    }
}

void gr_writer_bool(struct gr_writer *w, bool value) {
    separate(w);
    if (pickles(w))
        byte(w, value ? NEWTRUE : NEWFALSE);
    else
        gr_sink_text(w->sink, value ? "true" : "false");
}

void gr_writer_none(struct gr_writer *w) {
    separate(w);
    if (pickles(w))
        byte(w, NONE);
    else
        gr_sink_text(w->sink, "null");
}

/* value is at least 0 and finite, and JSON gets six decimals of it. */
void gr_writer_real(struct gr_writer *w, double value) {
    separate(w);
    if (pickles(w)) {
        uint64_t bits;
        memcpy(&bits, &value, sizeof(bits));
        byte(w, BINFLOAT);
        for (int shift = 56; shift >= 0; shift -= 8) byte(w, (int)(bits >> shift & 0xFF));
    } else {
        char digits[32];
        int64_t millionths = (int64_t)(value * 1e6 + 0.5); /* no locale, no exponent */
        snprintf(digits, sizeof(digits), "%lld.%06lld", (long long)(millionths / 1000000),
                 (long long)(millionths % 1000000));
        gr_sink_text(w->sink, digits);
    }
}

void gr_writer_pair(struct gr_writer *w, int64_t first, int64_t second) {
    if (!pickles(w)) {
        gr_writer_list(w);
        gr_writer_int(w, first);
        gr_writer_int(w, second);
        gr_writer_end(w);
        return;
    }
    separate(w);
    GR_ASSERT(w->depth < GR_WRITER_DEPTH, "W1");
    w->level[w->depth++].list = false; /* the two stand side by side on the stack */
    gr_writer_int(w, first);
    gr_writer_int(w, second);
    w->depth--;
    byte(w, TUPLE2);
}

/* ---- text ----------------------------------------------------------------------------------- */

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

/* Bytes of the character at the start of s, 1 to 4; 0 when it is none. */
static size_t character(const unsigned char *s, size_t left) {
    if (s[0] < 0x80) return 1;
    size_t size = s[0] >= 0xC2 && s[0] <= 0xDF   ? 2
                  : s[0] >= 0xE0 && s[0] <= 0xEF ? 3
                  : s[0] >= 0xF0 && s[0] <= 0xF4 ? 4
                                                 : 0;
    if (size == 0 || size > left) return 0;
    for (size_t i = 1; i < size; i++)
        if ((s[i] & 0xC0) != 0x80) return 0;
    bool narrow = (s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xF0 && s[1] < 0x90);
    bool surrogate = s[0] == 0xED && s[1] >= 0xA0;
    bool beyond = s[0] == 0xF4 && s[1] >= 0x90;
    return narrow || surrogate || beyond ? 0 : size;
}

static void escape(struct gr_writer *w, const unsigned char *s, size_t size) {
    char code[8];
    if (size > 1 || (s[0] >= 0x20 && s[0] != '"' && s[0] != '\\' && s[0] != 0x7F)) {
        gr_sink_put(w->sink, s, size);
    } else if (s[0] == '"' || s[0] == '\\') {
        byte(w, '\\');
        byte(w, s[0]);
    } else {
        snprintf(code, sizeof(code), "\\u%04x", s[0]);
        gr_sink_text(w->sink, code);
    }
}

/* Printable ASCII that no format changes, as nearly all text is. */
static bool is_plain(const unsigned char *s, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (s[i] < 0x20 || s[i] > 0x7E || s[i] == '"' || s[i] == '\\') return false;
    return true;
}

static void write_text(struct gr_writer *w, const char *text) {
    const unsigned char *s = (const unsigned char *)text;
    size_t length = strlen(text), written = 0;
    bool plain = is_plain(s, length);
    for (size_t i = 0, size; i < length && !plain; i += size ? size : 1) {
        size = character(s + i, length - i);
        written += size ? size : sizeof(replacement) - 1;
    }
    if (plain) written = length;
    if (!pickles(w)) {
        byte(w, '"');
    } else if (written < 256) {
        byte(w, SHORT_BINUNICODE);
        little(w, written, 1);
    } else {
        byte(w, BINUNICODE);
        little(w, written, 4);
    }
    if (plain) gr_sink_put(w->sink, s, length);
    for (size_t i = 0, size; i < length && !plain; i += size ? size : 1) {
        size = character(s + i, length - i);
        if (size == 0)
            gr_sink_put(w->sink, replacement, sizeof(replacement) - 1);
        else if (pickles(w))
            gr_sink_put(w->sink, s + i, size);
        else
            escape(w, s + i, size);
    }
    if (!pickles(w)) byte(w, '"');
}

void gr_writer_text(struct gr_writer *w, const char *text) {
    separate(w);
    write_text(w, text);
}

uint32_t gr_writer_remember(struct gr_writer *w) {
    byte(w, MEMOIZE);
    return ++w->names;
}

void gr_writer_recall(struct gr_writer *w, uint32_t name) {
    separate(w);
    uint32_t place = name - 1;
    byte(w, place < 256 ? BINGET : LONG_BINGET);
    little(w, place, place < 256 ? 1 : 4);
}

/* A literal is known by where it stands: the same word in two places is at worst written twice. */
static void write_word(struct gr_writer *w, const char *literal) {
    if (!pickles(w)) {
        write_text(w, literal);
        return;
    }
    size_t i = ((uintptr_t)literal * UINT64_C(0x9E3779B97F4A7C15) >> 40) % GR_WRITER_WORDS;
    while (w->known[i].word && w->known[i].word != literal) i = (i + 1) % GR_WRITER_WORDS;
    if (w->known[i].word) {
        uint32_t place = w->known[i].name - 1;
        byte(w, place < 256 ? BINGET : LONG_BINGET);
        little(w, place, place < 256 ? 1 : 4);
        return;
    }
    write_text(w, literal);
    if (w->words >= GR_WRITER_WORDS / 2) return;
    w->words++;
    w->known[i].word = literal;
    w->known[i].name = gr_writer_remember(w);
}

void gr_writer_word(struct gr_writer *w, const char *literal) {
    separate(w);
    write_word(w, literal);
}

void gr_writer_key(struct gr_writer *w, const char *literal) {
    GR_ASSERT(w->depth > 0 && !w->level[w->depth - 1].list, "W1");
    uint32_t count = w->level[w->depth - 1].count++;
    if (!pickles(w) && count > 0) byte(w, ',');
    write_word(w, literal);
    if (!pickles(w)) byte(w, ':');
}
