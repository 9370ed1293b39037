/* SPDX-License-Identifier: Apache-2.0
 * Random programs: shapes that matter and that random operations seldom make by themselves. Parts of
 * them are left to chance, and what comes after them is random again. */
#include "support/program.h"

static bool perhaps(struct program *p) {
    return !rng_once_in(&p->rng, 4);
}

static size_t some_size(struct program *p) {
    return rng_between(&p->rng, 1, 3) * 2 * GR_MIB;
}

static bool node(struct program *p, int stream) {
    int code = granary_sim_use(p->streams[stream].handle, &p->seed, 0, 0, 0, "node of no memory");
    return program_cu(p, code, "kernel");
}

/* A block of the size on the stream, used at once: what comes too early meets those before it. */
static bool take_again(struct program *p, int stream, size_t size) {
    struct program_block *b;
    if (!program_alloc(p, stream, size, &b)) return false;
    return !b || program_use(p, stream, b);
}

/* Work on another stream is still under way when a capture begins, and its block is freed in there. */
bool program_carry(struct program *p) {
    int owner = program_pick_stream(p), user = (owner + 1) % p->width,
        place = (int)rng_below(&p->rng, PROGRAM_POOLS);
    struct program_pool *pool = &p->pools[place];
    struct program_block *b;
    granary_scope scope;
    bool refused;
    size_t size = some_size(p);
    if (!pool->pool || pool->graphs || pool->scopes || p->scope_count) return true;
    if (p->streams[owner].capture >= 0 || p->streams[user].capture >= 0 || p->helped) return true;
    if (granary_scope_begin(p->g, pool->pool, NULL, NULL, &scope) != GRANARY_OK)
        return program_fault(p, "scope_begin");
    pool->scopes++;
    bool good = program_alloc(p, owner, size, &b);
    pool->scopes--;
    if (granary_scope_end(p->g, scope) != GRANARY_OK) return program_fault(p, "scope_end");
    if (!good || !b) return good;
    if (!program_use(p, owner, b) || !program_declare(p, b, user, &refused)) return false;
    if (!program_link(p, owner, user) || !program_use(p, user, b)) return false;
    if (!program_capture_begin_on(p, owner, place)) return false;
    if (!program_capturing(p, owner)) return true;
    if (!node(p, owner) || (perhaps(p) && !program_link(p, owner, user))) return false;
    if (!program_free(p, b)) return false;
    if (program_capturing(p, user) && perhaps(p) && !program_link(p, user, owner)) return false;
    return node(p, owner) && take_again(p, owner, size);
}

/* A stream uses two blocks and forgets about it between their frees. */
bool program_loosen(struct program *p) {
    int owner = program_pick_stream(p), user = (owner + 1) % p->width, capture = p->streams[owner].capture;
    struct program_block *first, *second;
    bool refused = false, fresh = p->streams[user].capture < 0;
    size_t size = some_size(p);
    if (!program_capturing(p, owner) ||
        (p->streams[user].capture >= 0 && p->streams[user].capture != capture))
        return true;
    if (p->captures[capture].origin == user || p->streams[user].loose) return true;
    if (!program_alloc(p, owner, size, &first) || !first) return !p->words[0];
    if (!program_alloc(p, owner, size, &second) || !second) return !p->words[0];
    if (!program_use(p, owner, first) || !program_use(p, owner, second) || !program_link(p, owner, user))
        return false;
    if (!program_declare(p, first, user, &refused) || !program_declare(p, second, user, &refused))
        return false;
    if (!program_use(p, user, first) || !program_use(p, user, second)) return false;
    if (fresh && rng_once_in(&p->rng, 4)) { /* never seen before, and seen empty: that says enough */
        if (!program_drop(p, user, true) || !program_free(p, first) || !program_free(p, second)) return false;
        return node(p, owner) && take_again(p, owner, size) && take_again(p, owner, size);
    }
    if (rng_once_in(&p->rng, 4) && !program_link(p, user, owner)) return false;
    if (!program_free(p, first) || (perhaps(p) && !program_drop(p, user, false))) return false;
    if (perhaps(p) && !program_link(p, user, owner)) return false;
    if (!program_free(p, second) || (perhaps(p) && !program_link(p, user, owner))) return false;
    return take_again(p, owner, size) && take_again(p, owner, size);
}

/* A block that another stream of the capture may get, and then the first again. */
bool program_lend(struct program *p) {
    int owner = program_pick_stream(p), user = (owner + 1) % p->width, capture = p->streams[owner].capture;
    struct program_block *b;
    bool refused = false;
    size_t size = some_size(p);
    if (p->options.capture_reuse != GRANARY_REUSE_GRAPH || !program_capturing(p, owner)) return true;
    if (p->streams[user].capture >= 0 && p->streams[user].capture != capture) return true;
    if (!program_alloc(p, owner, size, &b) || !b) return !p->words[0];
    if (!program_use(p, owner, b) || !program_link(p, owner, user) || !program_declare(p, b, user, &refused))
        return false;
    if (!program_use(p, user, b) || !program_link(p, user, owner) || !program_free(p, b)) return false;
    if (!program_link(p, owner, user) || (perhaps(p) && !program_link(p, user, owner))) return false;
    if (!program_alloc(p, user, size, &b) || !b) return !p->words[0];
    if (!program_use(p, user, b)) return false;
    if (rng_once_in(&p->rng, 4) && !program_link(p, user, owner)) return false;
    if (!program_free(p, b) || (rng_once_in(&p->rng, 4) && !program_link(p, user, owner))) return false;
    return node(p, owner) && take_again(p, owner, size);
}

/* A use is declared in a capture, and goes on when that is over. */
bool program_outlast(struct program *p) {
    int owner = program_pick_stream(p), user = (owner + 1) % p->width,
        place = (int)rng_below(&p->rng, PROGRAM_POOLS);
    struct program_block *b;
    bool refused = false;
    size_t size = some_size(p);
    if (p->streams[owner].capture >= 0 || p->streams[user].capture >= 0 || p->scope_count) return true;
    if (!program_alloc(p, owner, size, &b) || !b || !program_use(p, owner, b)) return !p->words[0];
    if (!program_capture_begin_on(p, user, place)) return false;
    int capture = p->streams[user].capture;
    if (capture < 0) return true;
    if (!program_declare(p, b, user, &refused) || !node(p, user)) return false;
    while (p->captures[capture].phase != PROGRAM_NONE)
        if (!program_capture_close(p, capture)) return false;
    if (!program_link(p, owner, user) || !program_use(p, user, b) || !program_free(p, b)) return false;
    return take_again(p, owner, size);
}
