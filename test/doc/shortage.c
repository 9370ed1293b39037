/* SPDX-License-Identifier: Apache-2.0
 * Runs out of memory in the way that is named, and prints what granary_explain says of it.
 *
 *      shortage NAME     one of those that `shortage` alone lists */
#include <stdio.h>
#include <string.h>

#include "support/shortage.h"

int main(int argc, char **argv) {
    char text[2048];
    struct granary_shortfall facts;
    for (const struct shortage_scene *scene = shortage_scenes; scene->name; scene++) {
        if (argc < 2) {
            printf("%-26s %s\n", scene->name, granary_shortage_sentence((int)scene->kind));
            continue;
        }
        if (strcmp(argv[1], scene->name) != 0) continue;
        int line = shortage_play(scene, NULL, &facts);
        if (line != 0 || facts.struct_size == 0) {
            fprintf(stderr, "shortage: %s does not play: line %d\n", scene->name, line);
            return 1;
        }
        granary_explain(&facts, text, sizeof text);
        fputs(text, stdout);
        return 0;
    }
    return argc < 2 ? 0 : 2;
}
