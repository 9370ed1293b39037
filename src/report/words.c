/* SPDX-License-Identifier: Apache-2.0
 * Words: from the facts of a failure to a sentence. */
#include "report/words.h"

#include "base/text.h"

void gr_words_shortfall(char *buffer, size_t room, int status, int device,
                        const struct granary_shortfall *s) {
    char asked[GR_TEXT_SIZE_ROOM], reserved[GR_TEXT_SIZE_ROOM], active[GR_TEXT_SIZE_ROOM],
        last[GR_TEXT_SIZE_ROOM];
    gr_text_size(asked, sizeof(asked), s->requested_bytes);
    gr_text_size(reserved, sizeof(reserved), s->reserved_bytes);
    gr_text_size(active, sizeof(active), s->active_bytes);
    gr_text_put(buffer, room, "%s (%zu bytes) do not fit on device %d: ", asked, s->requested_bytes, device);
    if (s->rounded_bytes > s->device_total_bytes) {
        gr_text_size(last, sizeof(last), s->device_total_bytes);
        gr_text_add(buffer, room, "the device has %s in all", last);
        return;
    }
    gr_text_add(buffer, room, "%s reserved, %s of it in use, ", reserved, active);
    if (status == GRANARY_OVER_LIMIT) {
        gr_text_size(last, sizeof(last), s->limit_bytes);
        gr_text_add(buffer, room, "and the limit is %s", last);
    } else if (status == GRANARY_ADDRESS_SPACE) {
        gr_text_size(last, sizeof(last), s->reserved_address_bytes);
        gr_text_add(buffer, room, "and no address space is left (%s reserved here)", last);
    } else {
        gr_text_size(last, sizeof(last), s->device_free_bytes);
        gr_text_add(buffer, room, "and the device has %s free", last);
    }
}
