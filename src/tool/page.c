/* SPDX-License-Identifier: Apache-2.0
 * The page of a report, which the assembler takes in as it is. */
#include "tool/page.h"

#include <stdint.h>
#include <string.h>

#ifdef PAGE_HTML
__asm__(".pushsection .rodata\n"
        "page_html:\n"
        ".incbin \"" PAGE_HTML "\"\n"
        "page_html_end:\n"
        ".balign 8\n"
        "page_html_length:\n"
        ".quad page_html_end - page_html\n"
        ".popsection\n");
#endif
extern const char page_html[] __attribute__((visibility("hidden")));
extern const uint64_t page_html_length __attribute__((visibility("hidden")));

struct page page_split(void) {
    static const char mark[] = "@@document@@";
    const size_t length = (size_t)page_html_length;
    const char *at = memmem(page_html, length, mark, sizeof mark - 1);
    struct page page = {page_html, at + sizeof mark - 1, (size_t)(at - page_html), 0};
    page.tail_length = length - page.head_length - (sizeof mark - 1);
    return page;
}
