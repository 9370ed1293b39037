/* SPDX-License-Identifier: Apache-2.0
 * The naive allocator that tells the truth. */
#include "support/model.h"

#include <stdio.h>
#include <stdlib.h>

enum { STRIDE = 64 * 1024 }; /* each page that is touched costs the simulation a page */

void model_fini(struct model *model) {
    free(model->blocks);
    *model = (struct model){0};
}

static void move(struct model_figure *figure, int64_t by) {
    figure->now += by;
    if (by > 0)
        figure->up += by;
    else
        figure->down -= by;
    if (figure->peak < figure->now) figure->peak = figure->now;
}

static void account(struct model *model, const struct model_block *block, int sign) {
    int classes[] = {MODEL_ALL, block->size <= GR_MIB ? MODEL_SMALL : MODEL_LARGE};
    for (int i = 0; i < 2; i++) {
        move(&model->allocated[classes[i]], sign * (int64_t)block->size);
        move(&model->requested[classes[i]], sign * (int64_t)block->requested);
        move(&model->blocks_live[classes[i]], sign);
    }
}

const struct model_block *model_add(struct model *model, const struct model_block *block) {
    for (size_t i = 0; i < model->count; i++) {
        const struct model_block *other = &model->blocks[i];
        if (block->addr < other->addr + other->size && other->addr < block->addr + block->size) return other;
    }
    if (model->count == model->room) {
        model->room = model->room ? 2 * model->room : 64;
        model->blocks = realloc(model->blocks, model->room * sizeof *model->blocks);
        if (model->blocks == NULL) abort();
    }
    model->blocks[model->count++] = *block;
    account(model, block, 1);
    return NULL;
}

void model_remove(struct model *model, size_t index) {
    struct model_block block = model->blocks[index];
    model->blocks[index] = model->blocks[--model->count];
    account(model, &block, -1);
}

void model_reset_peaks(struct model *model) {
    for (int c = 0; c < MODEL_CLASSES; c++) {
        model->allocated[c].peak = model->allocated[c].now;
        model->requested[c].peak = model->requested[c].now;
        model->blocks_live[c].peak = model->blocks_live[c].now;
    }
}

static bool equal(const char *name, const struct model_figure *mine, const struct granary_stat *theirs,
                  char words[128]) {
    const struct {
        const char *part;
        int64_t mine, theirs;
    } parts[] = {{"current", mine->now, theirs->current},
                 {"peak", mine->peak, theirs->peak},
                 {"total_up", mine->up, theirs->total_up},
                 {"total_down", mine->down, theirs->total_down}};
    for (size_t i = 0; i < GR_COUNT(parts); i++) {
        if (parts[i].mine == parts[i].theirs) continue;
        snprintf(words, 128, "%s.%s is %lld, should be %lld", name, parts[i].part, (long long)parts[i].theirs,
                 (long long)parts[i].mine);
        return false;
    }
    return true;
}

static bool equal_classes(const char *name, const struct model_figure mine[MODEL_CLASSES],
                          const struct granary_stat_by_class *theirs, char words[128]) {
    char full[48];
    const struct granary_stat *parts[] = {&theirs->all, &theirs->small, &theirs->large};
    static const char *const classes[] = {"all", "small", "large"};
    for (int c = 0; c < MODEL_CLASSES; c++) {
        snprintf(full, sizeof full, "%s.%s", name, classes[c]);
        if (!equal(full, &mine[c], parts[c], words)) return false;
    }
    return true;
}

const char *model_compare(const struct model *model, const struct granary_stats *stats, char words[128]) {
    bool same = equal_classes("allocated", model->allocated, &stats->allocated_bytes, words) &&
                equal_classes("active", model->allocated, &stats->active_bytes, words) &&
                equal_classes("requested", model->requested, &stats->requested_bytes, words) &&
                equal_classes("allocations", model->blocks_live, &stats->allocations, words) &&
                equal_classes("active_blocks", model->blocks_live, &stats->active_blocks, words);
    return same ? NULL : words;
}

/* ---- contents --------------------------------------------------------------------------------- */

static uint64_t *word_at(const struct model_block *block, size_t offset) {
    return (uint64_t *)(uintptr_t)(block->addr + offset);
}

void model_fill(const struct model_block *block) {
    for (size_t at = 0; at < block->size; at += STRIDE) *word_at(block, at) = block->pattern + at;
    *word_at(block, block->size - sizeof(uint64_t)) = ~block->pattern;
}

bool model_intact(const struct model_block *block) {
    for (size_t at = 0; at < block->size; at += STRIDE)
        if (*word_at(block, at) != block->pattern + at) return false;
    return *word_at(block, block->size - sizeof(uint64_t)) == ~block->pattern;
}
