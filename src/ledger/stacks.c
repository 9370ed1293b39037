/* SPDX-License-Identifier: Apache-2.0
 * Who asks: taking the caller's stack, and the words of its thread. */
#include "ledger/stacks.h"

#include <string.h>

#include "base/text.h"

_Thread_local struct gr_self gr_stacks_self;

void gr_stacks_init(struct gr_stacks *stacks) {
    memset(stacks, 0, sizeof(*stacks));
    gr_intern_init(&stacks->stacks, GR_STACKS_MOST);
    gr_intern_init(&stacks->tags, GR_TAGS_MOST);
    gr_intern_init(&stacks->texts, GR_INTERN_MOST);
    gr_intern_init(&stacks->python_frames, GR_INTERN_MOST);
    gr_intern_init(&stacks->places, GR_INTERN_MOST);
    gr_unwind_open(&stacks->unwind);
    gr_python_open(&stacks->python);
}

void gr_stacks_fini(struct gr_stacks *stacks) {
    gr_intern_fini(&stacks->stacks);
    gr_intern_fini(&stacks->tags);
    gr_intern_fini(&stacks->texts);
    gr_intern_fini(&stacks->python_frames);
    gr_intern_fini(&stacks->places);
}

static uint32_t put(struct gr_stacks *stacks, struct gr_intern *table, const void *key, size_t size) {
    if (size == 0) return 0;
    uint32_t number = gr_intern_put(table, key, size, NULL, 0);
    if (!number) atomic_fetch_add_explicit(&stacks->lost, 1, memory_order_relaxed);
    return number;
}

/* The stack's number. */
static uint32_t GR_ASIDE take(struct gr_stacks *stacks, int sources, const void *caller) {
    uint64_t word[2 * GR_STACK_FRAMES];
    size_t count = 0;
    if (sources & GRANARY_STACKS_C) count = gr_unwind_take(&stacks->unwind, caller, word, GR_STACK_FRAMES);
    if (sources & GRANARY_STACKS_PYTHON) {
        size_t c_frames = count;
        count += gr_python_take(&stacks->python, &stacks->python_frames, word + count, GR_STACK_FRAMES);
        for (size_t i = c_frames; i < count; i++) word[i] |= GR_STACK_PYTHON;
    }
    return put(stacks, &stacks->stacks, word, count * sizeof(word[0]));
}

/* After a change. */
static void look_again(struct gr_self *self) {
    self->said = self->note.of || self->tag[0] || self->metadata[0];
}

struct gr_note gr_stacks_enter(struct gr_stacks *stacks, int sources, const void *caller) {
    struct gr_self *self = &gr_stacks_self;
    struct gr_note before = self->note;
    uint32_t stack = sources ? take(stacks, sources, caller) : 0, tag = 0, metadata = 0;
    if (self->tag[0]) tag = put(stacks, &stacks->tags, self->tag, strlen(self->tag));
    if (self->metadata[0]) metadata = put(stacks, &stacks->texts, self->metadata, strlen(self->metadata));
    self->note = (struct gr_note){.of = stacks, .label = gr_label(stack, tag), .metadata = metadata};
    self->said = true;
    return before;
}

void gr_stacks_leave(struct gr_note before) {
    gr_stacks_self.note = before;
    look_again(&gr_stacks_self);
}

uint32_t gr_stacks_text(struct gr_stacks *stacks, const char *text) {
    return put(stacks, &stacks->texts, text, strlen(text));
}

const char *gr_stacks_word(const struct gr_intern *table, uint32_t number, char *buffer, size_t room) {
    buffer[0] = '\0';
    if (!number) return buffer;
    const struct gr_intern_item *item = gr_intern_get(table, number);
    gr_text_put(buffer, room, "%.*s", (int)item->key_size, (const char *)item->bytes);
    return buffer;
}

/* text and previous may be the same place. */
static int set(char *mine, const char *text, size_t room, char *previous) {
    char fresh[GRANARY_METADATA_ROOM] = "";
    size_t size = strnlen(text, room);
    if (size == room) return GRANARY_INVALID;
    memcpy(fresh, text, size);
    if (previous) memcpy(previous, mine, room);
    memcpy(mine, fresh, room);
    look_again(&gr_stacks_self);
    return GRANARY_OK;
}

int gr_stacks_set_tag(const char *tag, char previous[GRANARY_TAG_ROOM]) {
    return set(gr_stacks_self.tag, tag, GRANARY_TAG_ROOM, previous);
}

int gr_stacks_set_metadata(const char *text, char previous[GRANARY_METADATA_ROOM]) {
    return set(gr_stacks_self.metadata, text, GRANARY_METADATA_ROOM, previous);
}
