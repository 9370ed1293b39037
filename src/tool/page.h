/* SPDX-License-Identifier: Apache-2.0
 * The page of a report. The Makefile puts src/tool/page together into one file of HTML, and that into
 * the tool; the document goes where the page has its mark. */
#ifndef TOOL_PAGE_H
#define TOOL_PAGE_H

#include <stddef.h>

/* Bytes before and behind the document. */
struct page {
    const char *head, *tail;
    size_t head_length, tail_length;
};

struct page page_split(void);

#endif
