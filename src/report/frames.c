/* SPDX-License-Identifier: Apache-2.0
 * Frames: from the numbers of a stack to function, file and line. */
#include "report/frames.h"

#include <string.h>

void gr_frames_init(struct gr_frames *f, struct gr_stacks *stacks) {
    f->stacks = stacks;
    f->open = false;
}

void gr_frames_fini(struct gr_frames *f) {
    if (f->open) gr_symbols_close(&f->symbols);
}

/* Of a place: laid out as a Python frame's. */
static void read_value(const struct gr_intern_item *item, struct gr_frame *out) {
    const struct gr_python_frame *value = gr_intern_value(item);
    out->line = value->line;
    out->name = value->text;
    out->file = value->text + strlen(value->text) + 1;
}

static bool look_up(struct gr_frames *f, uint64_t address, struct gr_frame *out) {
    enum { TEXT = offsetof(struct gr_python_frame, text) };
    union {
        struct gr_python_frame frame;
        char room[TEXT + sizeof(((struct gr_symbol *)0)->name) + sizeof(((struct gr_symbol *)0)->file)];
    } value;
    struct gr_symbol symbol;
    if (!f->open) gr_symbols_open(&f->symbols);
    f->open = true;
    gr_symbols_find(&f->symbols, address, &symbol);
    size_t name = strlen(symbol.name) + 1, file = strlen(symbol.file) + 1;
    value.frame.line = symbol.line;
    memcpy(value.room + TEXT, symbol.name, name);
    memcpy(value.room + TEXT + name, symbol.file, file);
    out->number = gr_intern_put(&f->stacks->places, &address, sizeof(address), &value, TEXT + name + file);
    return out->number != 0;
}

size_t gr_frames_of(struct gr_frames *f, uint32_t stack, struct gr_frame out[2 * GR_STACK_FRAMES]) {
    if (!stack || !f->stacks) return 0;
    const struct gr_intern_item *item = gr_intern_get(&f->stacks->stacks, stack);
    size_t words = item->key_size / sizeof(uint64_t), count = 0;
    bool below = false; /* the interpreter */
    for (size_t i = 0; i < words && count < 2 * GR_STACK_FRAMES; i++) {
        struct gr_frame *frame = &out[count];
        uint64_t word;
        memcpy(&word, item->bytes + i * sizeof(word), sizeof(word));
        frame->python = (word & GR_STACK_PYTHON) != 0;
        if (frame->python) {
            frame->number = (uint32_t)word;
            read_value(gr_intern_get(&f->stacks->python_frames, frame->number), frame);
        } else {
            if (below) continue;
            frame->number = gr_intern_find(&f->stacks->places, &word, sizeof(word));
            if (!frame->number && !look_up(f, word, frame)) continue;
            read_value(gr_intern_get(&f->stacks->places, frame->number), frame);
            below = strncmp(frame->name, "_PyEval_EvalFrame", 17) == 0;
            if (below) continue;
        }
        count++;
    }
    return count;
}
