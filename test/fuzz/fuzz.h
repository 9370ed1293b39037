/* SPDX-License-Identifier: Apache-2.0
 * What fuzz targets share. A target is test/fuzz/fuzz_NAME.c and defines LLVMFuzzerTestOneInput; its inputs
 * to begin with lie in test/fuzz/corpus/NAME, its words, if any, in test/fuzz/NAME.dict. `make fuzz` runs it
 * with libFuzzer, `make fuzz-corpus` over its corpus without. */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Dies at once, so that the input which did it is kept. */
#define FUZZ_ASSERT(condition)                                                      \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                \
        }                                                                           \
    } while (0)

#endif
