/* SPDX-License-Identifier: Apache-2.0
 * Explanations: telling the kind of a shortfall, and its sentences. */
#include "report/explain.h"

#include "base/text.h"

/* ---- the kind ----------------------------------------------------------------------------- */

/* Bytes that this handle could hold at most: by the limit; and on the device beside what others hold. */
static size_t by_limit(const struct granary_shortfall *s) {
    return gr_min(s->limit_bytes, s->device_total_bytes);
}
static size_t beside_others(const struct granary_shortfall *s) {
    return s->device_total_bytes - gr_min(s->device_total_bytes, s->foreign_bytes);
}

static bool fits(const struct granary_shortfall *s, size_t room) {
    return s->allocated_bytes <= room && s->rounded_bytes <= room - s->allocated_bytes;
}

/* Private pools, whether their memory could be moved or not. */
static size_t in_private_pools(const struct granary_shortfall *s) {
    return s->free_private_bytes + s->free_graph_bytes;
}

/* Of the places where memory lies that is not live, the one that has most; the first of equal ones. */
static enum granary_shortage largest_place(const struct granary_shortfall *s) {
    const struct {
        size_t bytes;
        enum granary_shortage kind;
    } places[] = {{s->pending_bytes, GRANARY_SHORTAGE_PENDING},
                  {s->free_same_pool_bytes, GRANARY_SHORTAGE_FRAGMENTED},
                  {in_private_pools(s), GRANARY_SHORTAGE_PRIVATE_POOLS},
                  {s->free_other_stream_bytes, GRANARY_SHORTAGE_OTHER_STREAMS},
                  {s->free_other_class_bytes, GRANARY_SHORTAGE_OTHER_CLASS}};
    size_t best = 0;
    for (size_t i = 1; i < GR_COUNT(places); i++)
        if (places[i].bytes > places[best].bytes) best = i;
    if (places[best].bytes > 0) return places[best].kind;
    return s->limit_bytes < s->device_total_bytes && s->status == GRANARY_OVER_LIMIT
               ? GRANARY_SHORTAGE_OVER_LIMIT
               : GRANARY_SHORTAGE_FULL;
}

enum granary_shortage gr_explain_kind(const struct granary_shortfall *s) {
    /* CUDA itself takes some hundred MiB beside a handle; that is nobody to blame. */
    bool others = s->foreign_bytes > s->device_total_bytes / 16;
    if (s->status == GRANARY_ADDRESS_SPACE) return GRANARY_SHORTAGE_ADDRESS_SPACE;
    if (s->rounded_bytes > s->device_total_bytes) return GRANARY_SHORTAGE_TOO_LARGE;
    if (!fits(s, s->device_total_bytes)) return GRANARY_SHORTAGE_FULL;
    if (!fits(s, by_limit(s))) return GRANARY_SHORTAGE_OVER_LIMIT;
    if (!fits(s, beside_others(s))) return others ? GRANARY_SHORTAGE_FOREIGN : GRANARY_SHORTAGE_FULL;
    return largest_place(s);
}

/* ---- words -------------------------------------------------------------------------------- */

struct text {
    char *buffer;
    size_t room;
};

static void say(const struct text *t, const char *format, ...) GR_PRINTF(2, 3);
static void say(const struct text *t, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    gr_text_add_list(t->buffer, t->room, format, arguments);
    va_end(arguments);
}

/* A size in words, in one of a few buffers of the caller's expression. */
struct size {
    char words[GR_TEXT_SIZE_ROOM];
};
static struct size size_of(size_t bytes) {
    struct size size = {""};
    gr_text_size(size.words, sizeof(size.words), bytes);
    return size;
}
#define SIZE(bytes) (size_of(bytes).words)

/* What was in the way, as the end of a sentence. */
static void say_kind(const struct text *t, const struct granary_shortfall *s, enum granary_shortage kind) {
    switch (kind) {
    case GRANARY_SHORTAGE_TOO_LARGE: say(t, "the device has %s in all", SIZE(s->device_total_bytes)); return;
    case GRANARY_SHORTAGE_FULL:
        say(t, "the device is full: %s of its %s are live here", SIZE(s->allocated_bytes),
            SIZE(s->device_total_bytes));
        return;
    case GRANARY_SHORTAGE_OVER_LIMIT:
        say(t, "the limit of %s is reached: %s are live", SIZE(s->limit_bytes), SIZE(s->allocated_bytes));
        return;
    case GRANARY_SHORTAGE_FOREIGN:
        say(t, "others hold %s of the device's %s, and %s are live here", SIZE(s->foreign_bytes),
            SIZE(s->device_total_bytes), SIZE(s->allocated_bytes));
        return;
    case GRANARY_SHORTAGE_PENDING:
        say(t, "%s are freed but still in use on other streams", SIZE(s->pending_bytes));
        return;
    case GRANARY_SHORTAGE_FRAGMENTED:
        say(t, "%s are free in this pool, but in pieces of at most %s", SIZE(s->free_same_pool_bytes),
            SIZE(s->largest_free_bytes));
        return;
    case GRANARY_SHORTAGE_OTHER_CLASS:
        say(t, "%s are free, but among %s blocks, which share memory with live ones",
            SIZE(s->free_other_class_bytes), s->rounded_bytes <= GR_MIB ? "large" : "small");
        return;
    case GRANARY_SHORTAGE_OTHER_STREAMS:
        say(t, "%s are free, but in pools of other streams", SIZE(s->free_other_stream_bytes));
        return;
    case GRANARY_SHORTAGE_PRIVATE_POOLS:
        say(t, "%s are free, but in %s", SIZE(in_private_pools(s)),
            s->pool ? "other pools than the private one that was asked" : "private pools");
        return;
    case GRANARY_SHORTAGE_ADDRESS_SPACE:
        say(t, "no address space is left: %zu ranges hold %s of it", s->ranges,
            SIZE(s->reserved_address_bytes));
        return;
    }
}

void gr_explain_line(char *buffer, size_t room, const struct granary_shortfall *s) {
    const struct text t = {buffer, room};
    gr_text_put(buffer, room, "%s (%zu bytes) do not fit on device %d: ", SIZE(s->requested_bytes),
                s->requested_bytes, s->device);
    say_kind(&t, s, gr_explain_kind(s));
}

static void say_place(const struct text *t, const char *place, size_t bytes, const char *remark) {
    if (bytes > 0) say(t, "  %-26s %12s%s%s\n", place, SIZE(bytes), remark[0] ? "   " : "", remark);
}

static void say_places(const struct text *t, const struct granary_shortfall *s) {
    char largest[64] = "", idle[80] = "";
    size_t free_bytes = s->reserved_bytes - gr_min(s->reserved_bytes, s->active_bytes);
    gr_text_put(largest, sizeof(largest), "largest piece %s", SIZE(s->largest_free_bytes));
    if (free_bytes > 0)
        gr_text_put(idle, sizeof(idle), "of what is free, %s could be moved or given back",
                    SIZE(s->idle_bytes));
    say_place(t, "live", s->allocated_bytes, "");
    say_place(t, "freed, in use elsewhere", s->pending_bytes, "");
    say_place(t, "free, in the pool asked", s->free_same_pool_bytes, largest);
    say_place(t, "free, other size class", s->free_other_class_bytes, "");
    say_place(t, "free, other streams", s->free_other_stream_bytes, "");
    say_place(t, s->pool ? "free, other pools" : "free, private pools", s->free_private_bytes, "");
    say_place(t, "free, pools of graphs", s->free_graph_bytes, "their addresses are in graphs");
    say_place(t, "reserved in all", s->reserved_bytes, idle);
    say_place(t, "kept as handles", s->handle_cache_bytes, "");
    say_place(t, "held by others", s->foreign_bytes, "other processes, and CUDA itself");
    say_place(t, "free on the device", s->device_free_bytes, "");
    if (s->limit_bytes != GRANARY_UNLIMITED) say_place(t, "limit", s->limit_bytes, "");
}

static void say_stream(const struct text *t, granary_stream stream) {
    if (stream == (granary_stream)1 || !stream)
        say(t, "the default stream");
    else
        say(t, "stream %p", (void *)stream);
}

/* Tags or stacks where they are known, and the first streams. */
static void say_holders(const struct text *t, const struct granary_shortfall *s) {
    size_t shown = gr_min(s->stream_count, 3);
    for (size_t i = 0; i < GR_COUNT(s->holders) && s->holders[i].bytes > 0; i++)
        say(t, "  %.*s holds %s in %zu block%s\n", (int)sizeof(s->holders[i].name) - 1, s->holders[i].name,
            SIZE(s->holders[i].bytes), s->holders[i].blocks, s->holders[i].blocks == 1 ? "" : "s");
    for (size_t i = 0; i < shown; i++) {
        const struct granary_shortfall_stream *row = &s->streams[i];
        say(t, "  ");
        say_stream(t, row->stream);
        say(t, ": %s live, %s free", SIZE(row->live_bytes), SIZE(row->free_bytes));
        if (row->pending_bytes > 0) say(t, ", %s wait for it", SIZE(row->pending_bytes));
        say(t, "\n");
    }
    size_t more = s->stream_count - shown;
    if (more > 0) say(t, "  and %zu more stream%s\n", more, more == 1 ? "" : "s");
}

static void say_rungs(const struct text *t, const struct granary_shortfall *s) {
    static const char *const words[] = {
#define WORDS(name, value, text) [value] = (text),
        GRANARY_RUNG_MAP(WORDS)
#undef WORDS
    };
    const char *comma = "";
    say(t, "Tried: ");
    for (size_t i = 0; i < GR_COUNT(words); i++) {
        if (!(s->rungs >> i & 1)) continue;
        say(t, "%s%s", comma, words[i]);
        comma = ", ";
    }
    say(t, ".\n");
}

/* ---- advice ------------------------------------------------------------------------------- */

/* How much less would have had to be live, or asked for. */
static size_t lacking(const struct granary_shortfall *s) {
    size_t wanted = s->allocated_bytes + s->rounded_bytes, room = beside_others(s);
    size_t grown = s->grow_bytes - gr_min(s->grow_bytes, s->device_free_bytes);
    return gr_max(wanted - gr_min(wanted, room),
                  grown); /* the latter where only whole granules are missing */
}

/* Memory is free but cannot be moved: what makes more of it movable, the strongest first. pinned: live
 * blocks hold the extents around them. */
static bool advise_mobility(const struct text *t, const struct granary_shortfall *s, bool pinned) {
    if (!s->expandable_segments && s->virtual_memory)
        say(t, "expandable_segments:True. Free memory then moves to where it is needed.");
    else if (s->reclaim == GRANARY_RECLAIM_OFF && s->idle_bytes > 0)
        say(t, "reclaim:pressure. Idle memory of other places then serves before this error.");
    else if (s->open_captures > 0 && s->idle_bytes > 0)
        say(t, "granary_trim before the capture begins. While one is open nothing is moved.");
    else if (s->expandable_segments && pinned && s->extent_bytes > 2 * GR_MIB)
        say(t, "extent_mb:2 instead of %zu. A live block then pins 2 MiB at most around it.",
            s->extent_bytes / GR_MIB);
    else
        return false;
    return true;
}

static void advise(const struct text *t, const struct granary_shortfall *s, enum granary_shortage kind) {
    say(t, "Most likely to help: ");
    switch (kind) {
    case GRANARY_SHORTAGE_TOO_LARGE: say(t, "a smaller request; no setting makes it fit."); break;
    case GRANARY_SHORTAGE_FULL:
        say(t, "keeping %s less alive at once; no setting makes room.", SIZE(lacking(s)));
        break;
    case GRANARY_SHORTAGE_OVER_LIMIT:
        say(t, "a limit of at least %s (granary_set_limit, memory_limit, per_process_memory_fraction).",
            SIZE(s->allocated_bytes + s->rounded_bytes));
        break;
    case GRANARY_SHORTAGE_FOREIGN:
        say(t, "ending what else runs on the device (nvidia-smi shows it): %s are missing.",
            SIZE(lacking(s)));
        break;
    case GRANARY_SHORTAGE_PENDING:
        if (s->open_captures > 0 && s->capture_reuse == GRANARY_REUSE_OFF)
            say(t, "graph_capture_record_stream_reuse:True. Freed blocks then serve again within a capture.");
        else if (s->open_captures > 0)
            say(t,
                "to let the allocating stream wait for the others, within the capture, before it allocates.");
        else
            say(t, "to wait for the streams that still use it, or to free on the thread whose stream it is.");
        break;
    case GRANARY_SHORTAGE_PRIVATE_POOLS:
        if (s->free_graph_bytes > s->free_private_bytes)
            say(t, "granary_pool_release for pools whose graphs are destroyed, or one pool for several.");
        else if (s->pool == 0 && !(s->rungs >> GRANARY_RUNG_LENDING & 1))
            say(t, "use_on_shortage for the private pool. It then lends its free blocks.");
        else if (!advise_mobility(t, s, true))
            say(t, "fewer private pools, or releasing those that are not needed any more.");
        break;
    case GRANARY_SHORTAGE_FRAGMENTED:
        if (!advise_mobility(t, s, true))
            say(t, "to allocate what lives long first, so that it lies together.");
        break;
    case GRANARY_SHORTAGE_OTHER_CLASS:
        if (!advise_mobility(t, s, s->rounded_bytes <= GR_MIB)) /* small blocks pin 2 MiB as it is */
            say(t, "fewer small blocks that live long among short-lived ones.");
        break;
    case GRANARY_SHORTAGE_OTHER_STREAMS:
        if (!advise_mobility(t, s, true)) say(t, "fewer streams that allocate.");
        break;
    case GRANARY_SHORTAGE_ADDRESS_SPACE:
        say(t, "fewer streams and private pools; granary_stream_destroyed and granary_pool_release give "
               "their ranges back.");
        break;
    }
    say(t, "\n");
}

void gr_explain_all(char *buffer, size_t room, const struct granary_shortfall *s) {
    const struct text t = {buffer, room};
    enum granary_shortage kind = gr_explain_kind(s);
    gr_explain_line(buffer, room, s);
    say(&t, ".\n");
    say_places(&t, s);
    say_holders(&t, s);
    say_rungs(&t, s);
    advise(&t, s, kind);
}
