/* SPDX-License-Identifier: Apache-2.0
 * A fuzz target without libFuzzer: runs it over files, and over random changes of them.
 *   plain_NAME DIRECTORY [COUNT [SEED]] */
#include <dirent.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "support/rng.h"

enum { INPUTS = 4096, LONGEST = 1 << 20, CHANGES = 8 };

struct input {
    uint8_t *data;
    size_t size;
};

static struct input inputs[INPUTS];
static size_t input_count;

static void run(const uint8_t *data, size_t size) {
    uint8_t *exact = malloc(size ? size : 1); /* so that a sanitizer sees one byte too far */
    if (exact == NULL) abort();
    if (size) memcpy(exact, data, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

static int read_input(const char *directory, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) return -1;
    struct input *input = &inputs[input_count++];
    input->data = malloc(LONGEST);
    input->size = input->data ? fread(input->data, 1, LONGEST, file) : 0;
    fclose(file);
    uint8_t *fitting = input->data ? realloc(input->data, input->size ? input->size : 1) : NULL;
    if (fitting) input->data = fitting;
    return fitting ? 0 : -1;
}

static int read_inputs(const char *directory) {
    struct dirent **entries;
    int count = scandir(directory, &entries, NULL, alphasort), rc = count > 0 ? 0 : -1;
    for (int i = 0; i < count; i++) {
        if (rc == 0 && input_count < INPUTS && entries[i]->d_name[0] != '.')
            rc = read_input(directory, entries[i]->d_name);
        free(entries[i]);
    }
    if (count >= 0) free(entries);
    return rc;
}

/* Some bytes of one input, changed in a few places, or with a piece of another put in. */
static size_t change(struct rng *rng, uint8_t *out, size_t room) {
    const struct input *from = &inputs[rng_below(rng, input_count)];
    size_t size = from->size < room ? from->size : room;
    memcpy(out, from->data, size);
    for (size_t n = 1 + rng_below(rng, CHANGES); n > 0; n--) {
        const struct input *other = &inputs[rng_below(rng, input_count)];
        size_t at = rng_below(rng, size + 1), len;
        switch (rng_below(rng, 4)) {
        case 0: /* another byte */
            if (size > 0) out[rng_below(rng, size)] = (uint8_t)rng_below(rng, 256);
            break;
        case 1: /* a piece out */
            len = rng_below(rng, size - at + 1);
            memmove(out + at, out + at + len, size - at - len);
            size -= len;
            break;
        default: { /* a piece of another in */
            size_t start = rng_below(rng, other->size + 1);
            len = rng_below(rng, other->size - start + 1);
            if (len > room - size) len = room - size;
            memmove(out + at + len, out + at, size - at);
            memcpy(out + at, other->data + start, len);
            size += len;
        }
        }
    }
    return size;
}

int main(int argc, char **argv) {
    static uint8_t buffer[4096];
    unsigned long count = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    struct rng rng = {argc > 3 ? strtoul(argv[3], NULL, 10) : 1};
    if (argc < 2 || read_inputs(argv[1]) != 0 || input_count == 0) {
        fprintf(stderr, "%s: there are no inputs to read\n", argv[0]);
        return 1;
    }
    for (size_t i = 0; i < input_count; i++) run(inputs[i].data, inputs[i].size);
    for (unsigned long i = 0; i < count; i++) run(buffer, change(&rng, buffer, sizeof buffer));
    printf("%s: %zu inputs and %lu changes of them\n",
           strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0], input_count, count);
    for (size_t i = 0; i < input_count; i++) free(inputs[i].data);
    return 0;
}
