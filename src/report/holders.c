/* SPDX-License-Identifier: Apache-2.0
 * Holders: who holds most of the memory. */
#include "report/holders.h"

#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/text.h"
#include "report/frames.h"

enum { FRAMES_NAMED = 4 };

struct sum {
    size_t bytes, blocks;
    uint32_t number; /* of the tag or the stack */
};

static int by_bytes(const void *left, const void *right) {
    const struct sum *a = left, *b = right;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
    return (a->number > b->number) - (a->number < b->number);
}

static void name_tag(const struct gr_stacks *stacks, uint32_t number, struct granary_holder *out) {
    if (stacks) gr_stacks_word(&stacks->tags, number, out->name, GRANARY_TAG_ROOM);
}

static void name_stack(struct gr_frames *frames, uint32_t number, struct granary_holder *out) {
    struct gr_frame frame[2 * GR_STACK_FRAMES];
    size_t count = gr_frames_of(frames, number, frame);
    for (size_t i = 0; i < gr_min(count, FRAMES_NAMED); i++) {
        const char *slash = strrchr(frame[i].file, '/');
        gr_text_add(out->name, sizeof(out->name), "%s%s (%s", i > 0 ? " < " : "", frame[i].name,
                    slash ? slash + 1 : frame[i].file);
        if (frame[i].line > 0) gr_text_add(out->name, sizeof(out->name), ":%d", frame[i].line);
        gr_text_add(out->name, sizeof(out->name), ")");
    }
}

static int rank(const struct gr_dump *dump, enum granary_holders by, struct granary_holder *out, size_t room,
                size_t *count) {
    struct gr_stacks *stacks = dump->source ? &dump->source->stacks : NULL;
    const struct gr_intern *table = !stacks ? NULL : by == GRANARY_BY_TAG ? &stacks->tags : &stacks->stacks;
    size_t numbers = (table ? atomic_load(&table->count) : 0) + 1, found = 0;
    struct sum *sums = gr_host_take(numbers, sizeof(*sums), sizeof(void *));
    if (!sums) return GRANARY_HOST_MEMORY;
    for (size_t i = 0; i < numbers; i++) sums[i].number = (uint32_t)i;
    for (size_t i = 0; i < dump->block_count; i++) {
        const struct gr_dump_block *b = &dump->blocks[i];
        if (b->state == GR_BLOCK_FREE) continue;
        struct sum *sum = &sums[by == GRANARY_BY_TAG ? gr_label_tag(b->label) : gr_label_stack(b->label)];
        sum->bytes += b->size;
        sum->blocks++;
    }
    qsort(sums, numbers, sizeof(*sums), by_bytes);
    struct gr_frames frames;
    gr_frames_init(&frames, stacks);
    for (; found < room && found < numbers && sums[found].blocks > 0; found++) {
        out[found] = (struct granary_holder){.bytes = sums[found].bytes, .blocks = sums[found].blocks};
        if (by == GRANARY_BY_TAG)
            name_tag(stacks, sums[found].number, &out[found]);
        else
            name_stack(&frames, sums[found].number, &out[found]);
    }
    gr_frames_fini(&frames);
    gr_host_give(sums);
    *count = found;
    return GRANARY_OK;
}

int gr_holders_read(granary *g, enum granary_holders by, struct granary_holder *out, size_t room,
                    size_t *count) {
    struct gr_dump dump;
    int status = gr_dump_take(g, false, &dump);
    if (status != GRANARY_OK) return status;
    status = rank(&dump, by, out, room, count);
    gr_dump_fini(&dump);
    return status;
}

void gr_holders_fill(granary *g, struct granary_shortfall *shortfall) {
    enum { MOST = GR_COUNT(shortfall->holders) + 1 }; /* one may be unknown */
    struct granary_holder holders[MOST];
    size_t count = 0, known = 0;
    gr_lock_take(&g->dump); /* it may be made just now */
    const struct gr_history *history = g->ledger.history;
    gr_lock_give(&g->dump);
    if (!history) return;
    bool tags = atomic_load(&history->stacks.tags.count) > 0;
    if (gr_holders_read(g, tags ? GRANARY_BY_TAG : GRANARY_BY_STACK, holders, MOST, &count) != GRANARY_OK)
        return;
    for (size_t i = 0; i < count && known < GR_COUNT(shortfall->holders); i++)
        if (holders[i].name[0]) shortfall->holders[known++] = holders[i];
}
