/* SPDX-License-Identifier: Apache-2.0
 * Settings in words: values, origins, and the rules by which one setting takes the effect of another. */
#include "policy/effective.h"

#include <string.h>

#include "base/text.h"
#include "policy/value.h"

/* ---- what has no effect, or more than one may think -------------------------------------------- */

typedef const struct granary_options *settings;

static bool expandable(settings o) {
    return o->expandable_segments != 0;
}
static bool classic(settings o) {
    return !expandable(o);
}
static bool ever(settings o) {
    (void)o;
    return true;
}
static bool uncached(settings o) {
    return o->no_caching != 0;
}
static bool rejecting(settings o) {
    return o->reject_early != 0;
}
static bool never_split_off(settings o) {
    return o->max_split_size == GRANARY_UNLIMITED;
}
static bool small_extents(settings o) {
    return o->extent_bytes < 8 * GR_MIB;
}
static bool eager(settings o) {
    return expandable(o) && o->reclaim == GRANARY_RECLAIM_EAGER;
}
static bool no_reclaim(settings o) {
    return o->reclaim == GRANARY_RECLAIM_OFF;
}
static bool eager_classic(settings o) {
    return classic(o) && o->reclaim == GRANARY_RECLAIM_EAGER;
}
static bool nothing_allowed(settings o) {
    return o->limit_fraction <= 0;
}
static bool two_limits(settings o) {
    return o->limit_bytes != GRANARY_UNLIMITED && o->limit_fraction < 1;
}
static bool no_reuse(settings o) {
    return o->capture_reuse == GRANARY_REUSE_OFF;
}

struct rule {
    const char *key;
    bool (*holds)(settings o);
    const char *words;
};

/* For a key that was given, the first that holds. */
static const struct rule rules[] = {
    {"no_caching", uncached, "leaves split sizes, thresholds, reserves and reclaim without effect"},
    {"expandable_segments", uncached, "has no effect beside no_caching"},
    {"strict", classic, "has no effect: expandable segments were not asked for"},
    {"per_process_memory_fraction", nothing_allowed, "of 0 lets nothing be allocated at all"},
    {"per_process_memory_fraction", two_limits, "and memory_limit are both set: the lower one counts"},
    {"throw_on_cudamalloc_oom", rejecting, "fails requests that idle memory would have served"},
    {"reclaim", no_reclaim, "is off: requests fail although idle memory would serve them"},
    {"reclaim", eager_classic, "has nothing to move on classic segments: eager is the same as pressure"},
    {"extent_mb", classic, "has no effect on classic segments"},
    {"extent_mb", eager, "has no effect beside reclaim:eager, which makes all memory in granules of 2 MiB"},
    {"extent_mb", small_extents, "is below 8: kernels lose bandwidth, with 2 a fifth of it"},
    {"large_segment_size_mb", expandable,
     "has no effect beside expandable_segments: extent_mb is what sizes their physical allocations"},
    {"handle_cache", classic, "has no effect on classic segments"},
    {"expandable_segments_reserve", classic, "has no effect on classic segments"},
    {"expandable_segments_reserve_by_class", classic, "has no effect on classic segments"},
    {"roundup_power2_divisions", expandable,
     "only costs memory beside expandable_segments, whose free blocks join without limit"},
    {"max_split_size_mb", expandable,
     "has no effect beside expandable_segments: their blocks are always split, and join again"},
    {"max_non_split_rounding_mb", expandable,
     "has no effect beside expandable_segments: their blocks are always split, and join again"},
    {"max_non_split_rounding_mb", never_split_off, "has no effect without max_split_size_mb"},
    {"capture_marker", no_reuse, "has no effect with capture_reuse:off"},
    {"release_lock_on_cudamalloc", ever, "is not obeyed"},
    {"backend", ever, "is not obeyed"},
};

static bool given(settings o, const struct gr_option *option) {
    return o->origin[gr_option_owner(option)] != GR_FROM_DEFAULT || !gr_option_is_standard(option, o);
}

/* What is to be said of a key, after its name; "" when nothing is. */
static void note(settings o, const struct gr_option *option, char *text, size_t room) {
    const char *words = NULL;
    gr_text_put(text, room, "%s", "");
    if (!given(o, option)) return;
    for (size_t i = 0; i < GR_COUNT(rules) && !words; i++)
        if (strcmp(rules[i].key, option->key) == 0 && rules[i].holds(o)) words = rules[i].words;
    if (option->ignored)
        gr_text_put(text, room, "%s: %s", words ? words : "is ignored", option->sentence);
    else if (words)
        gr_text_put(text, room, "%s", words);
}

/* ---- from outside ----------------------------------------------------------------------------- */

static const char *origin_of(settings o, const struct gr_option *option) {
    static const char *const names[] = {
        [GR_FROM_DEFAULT] = "default",
        [GR_FROM_STRING] = "string",
        [GR_FROM_GRANARY_CONF] = "GRANARY_CONF",
        [GR_FROM_PYTORCH_CUDA_ALLOC_CONF] = "PYTORCH_CUDA_ALLOC_CONF",
        [GR_FROM_PYTORCH_ALLOC_CONF] = "PYTORCH_ALLOC_CONF",
        [GR_FROM_GRANARY_NO_CACHING] = "GRANARY_NO_CACHING",
        [GR_FROM_PYTORCH_NO_CUDA_MEMORY_CACHING] = "PYTORCH_NO_CUDA_MEMORY_CACHING",
        [GR_FROM_DEVICE] = "device",
    };
    size_t origin = o->origin[gr_option_owner(option)];
    if (origin == GR_FROM_DEFAULT && !gr_option_is_standard(option, o)) return "program";
    return names[origin < GR_COUNT(names) ? origin : GR_FROM_DEFAULT];
}

bool gr_effective_info(const struct granary_options *options, size_t index, struct granary_option_info *out) {
    if (index >= gr_option_count) return false;
    const struct gr_option *option = &gr_options[index];
    out->key = option->key;
    out->sentence = option->sentence;
    out->values = option->values;
    out->standard = option->standard;
    out->origin = origin_of(options, option);
    out->changeable = option->changeable;
    out->ignored = option->ignored;
    gr_value_print(options, option, out->value, sizeof out->value);
    note(options, option, out->note, sizeof out->note);
    return true;
}

bool gr_effective_warning(const struct granary_options *options, size_t index, char *text, size_t room) {
    if (options->skipped[0] && index-- == 0) {
        gr_text_put(text, room, "no option of granary, skipped: %.64s; `granary options` lists what there is",
                    options->skipped);
        return true;
    }
    if (options->unread && index-- == 0) {
        gr_text_put(text, room,
                    "PYTORCH_ALLOC_CONF was not read: PYTORCH_CUDA_ALLOC_CONF is set, to something else");
        return true;
    }
    for (size_t i = 0; i < gr_option_count; i++) {
        char words[256];
        note(options, &gr_options[i], words, sizeof words);
        if (words[0] && index-- == 0) {
            gr_text_put(text, room, "%s %s", gr_options[i].key, words);
            return true;
        }
    }
    return false;
}
