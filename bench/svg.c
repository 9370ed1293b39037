/* SPDX-License-Identifier: Apache-2.0
 * The picture of the fragmentation benchmark: reserved and active memory over the operations. */
#include "svg.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

/* Sizes in pixels. A panel is its plot with the words and axes around it. */
enum {
    WIDTH = 1240,
    MARGIN = 36,
    HEAD = 118,
    COLUMN = (WIDTH - 2 * MARGIN) / 2,
    PLOT_LEFT = 46,
    PLOT_TOP = 58,
    PLOT_WIDTH = COLUMN - PLOT_LEFT - 22,
    PLOT_HEIGHT = 220,
    PANEL_HEIGHT = PLOT_TOP + PLOT_HEIGHT + 62,
    FOOT = 20
};

#define INK "#1c2430"
#define MUTED "#66707d"
#define GRID "#e6e9ee"
#define ACTIVE_FILL "#dbe4ef"
#define ACTIVE_EDGE "#93a7c1"
#define CLASSIC "#d97a1e"
#define EXPANDABLE "#00796f"
#define PYTORCH "#7a3db8"

static const double GIB = 1073741824.0;

/* Where a panel's numbers go on the page. */
struct scale {
    double left, top;  /* of the plot */
    double ops, bytes; /* at the right and upper edges */
    double step;       /* between horizontal lines, in GiB */
};

static double x_of(const struct scale *s, double op) {
    return s->left + op / s->ops * PLOT_WIDTH;
}

static double y_of(const struct scale *s, double bytes) {
    return s->top + PLOT_HEIGHT - bytes / s->bytes * PLOT_HEIGHT;
}

static void text(FILE *to, double x, double y, const char *style, const char *words) {
    fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, style);
    for (; *words != 0; words++) {
        if (*words == '<')
            fputs("&lt;", to);
        else if (*words == '>')
            fputs("&gt;", to);
        else if (*words == '&')
            fputs("&amp;", to);
        else
            fputc(*words, to);
    }
    fputs("</text>\n", to);
}

/* A step of 1, 2 or 5 times a power of ten that divides range in about `parts`. */
static double nice_step(double range, int parts) {
    double power = pow(10, floor(log10(range / parts))), rest = range / parts / power;
    return power * (rest < 1.5 ? 1 : rest < 3.5 ? 2 : rest < 7.5 ? 5 : 10);
}

/* Steps, since memory does not change between operations. area closes the path along the axis. */
static void curve(FILE *to, const struct scale *s, const struct svg_curve *c, bool active, bool area,
                  const char *style) {
    double level = y_of(s, 0), x = x_of(s, 0);
    fprintf(to, "<path %s stroke-linejoin=\"round\" d=\"M%.1f %.1f", style, x, level);
    for (size_t i = 0; i < c->count; i++) {
        double y = y_of(s, (double)(active ? c->points[i].active : c->points[i].reserved));
        if (fabs(y - level) >= 0.1) fprintf(to, "H%.1fV%.1f", x, level = y);
        x = x_of(s, (double)c->points[i].op);
    }
    fprintf(to, "H%.1f", x);
    if (area) fprintf(to, "V%.1fZ", y_of(s, 0));
    fprintf(to, "\"/>\n");
}

static void axes(FILE *to, const struct scale *s) {
    double step = s->step;
    char words[32];
    for (int i = 0; (double)i * step * GIB <= s->bytes * 1.0001; i++) {
        double y = y_of(s, (double)i * step * GIB);
        fprintf(to, "<path d=\"M%.1f %.1fh%d\" stroke=\"%s\"/>\n", s->left, y, PLOT_WIDTH,
                i == 0 ? "#9aa3ae" : GRID);
        snprintf(words, sizeof words, step < 1 ? "%.1f" : "%.0f", (double)i * step);
        text(to, s->left - 8, y + 4, "class=\"tick\" text-anchor=\"end\"", words);
    }
    step = nice_step(s->ops, 4);
    for (int i = 0; (double)i * step <= s->ops; i++) {
        double x = x_of(s, (double)i * step);
        fprintf(to, "<path d=\"M%.1f %.1fv5\" stroke=\"#9aa3ae\"/>\n", x, s->top + PLOT_HEIGHT);
        if (step >= 1000)
            snprintf(words, sizeof words, i == 0 ? "0" : "%.0fk", (double)i * step / 1000);
        else
            snprintf(words, sizeof words, "%.0f", (double)i * step);
        text(to, x, s->top + PLOT_HEIGHT + 19, "class=\"tick\" text-anchor=\"middle\"", words);
    }
    text(to, s->left - 8, s->top - 12, "class=\"axis\" text-anchor=\"end\"", "GiB");
    text(to, s->left + PLOT_WIDTH, s->top + PLOT_HEIGHT + 36, "class=\"axis\" text-anchor=\"end\"",
         "operations");
}

/* The upper edge is the first line at or above all curves. */
static void set_height(struct scale *s, const struct svg_panel *p) {
    double most = fmax(GIB / 1024, fmax(p->classic.pytorch_bytes, p->expandable.pytorch_bytes));
    for (size_t i = 0; i < p->classic.count; i++) most = fmax(most, (double)p->classic.points[i].reserved);
    for (size_t i = 0; i < p->expandable.count; i++)
        most = fmax(most, (double)p->expandable.points[i].reserved);
    s->step = nice_step(most / GIB, 5);
    s->bytes = ceil(most / GIB / s->step) * s->step * GIB;
}

static void dashed(FILE *to, const struct scale *s, double bytes, const char *dashes) {
    if (bytes <= 0) return;
    fprintf(to,
            "<path d=\"M%.1f %.1fh%d\" stroke=\"" PYTORCH
            "\" stroke-width=\"1.6\" stroke-dasharray=\"%s\"/>\n",
            s->left, y_of(s, bytes), PLOT_WIDTH, dashes);
}

/* "granary 1.003  PyTorch 1.047": peak reserved by peak active in expandable mode. */
static void ratios(FILE *to, const struct svg_panel *p, double right, double y) {
    fprintf(to,
            "<text x=\"%.1f\" y=\"%.1f\" class=\"what\" text-anchor=\"end\">granary"
            "<tspan dx=\"5\" class=\"ratio\" style=\"fill:" EXPANDABLE "\">%.3f</tspan>",
            right, y, p->expandable.ratio);
    if (p->expandable.pytorch_ratio > 0)
        fprintf(to,
                "<tspan dx=\"16\">PyTorch</tspan><tspan dx=\"5\" class=\"ratio\" style=\"fill:" PYTORCH
                "\">%.3f</tspan>",
                p->expandable.pytorch_ratio);
    fprintf(to, "</text>\n");
}

static void panel(FILE *to, const struct svg_panel *p, double left, double top) {
    struct scale s = {left + PLOT_LEFT, top + PLOT_TOP, p->ops > 0 ? (double)p->ops : 1, 1, 1};
    set_height(&s, p);
    fprintf(to, "<g>\n");
    text(to, left + PLOT_LEFT, top + 16, "class=\"name\"", p->title);
    text(to, left + PLOT_LEFT, top + 33, "class=\"what\"", p->what);
    ratios(to, p, s.left + PLOT_WIDTH, top + 24);
    axes(to, &s);
    curve(to, &s, &p->expandable, true, true,
          "fill=\"" ACTIVE_FILL "\" stroke=\"" ACTIVE_EDGE "\" stroke-width=\"0.7\"");
    curve(to, &s, &p->classic, false, false, "fill=\"none\" stroke=\"" CLASSIC "\" stroke-width=\"1.8\"");
    curve(to, &s, &p->expandable, false, false, "fill=\"none\" stroke=\"" EXPANDABLE "\" stroke-width=\"2\"");
    dashed(to, &s, p->classic.pytorch_bytes, "2 4");
    dashed(to, &s, p->expandable.pytorch_bytes, "7 4");
    fprintf(to, "</g>\n");
}

static void legend(FILE *to, double x, double y) {
    static const struct {
        const char *mark, *words;
        double width;
    } entries[] = {
        {"<rect y=\"-11\" width=\"24\" height=\"12\" fill=\"" ACTIVE_FILL "\" stroke=\"" ACTIVE_EDGE "\"/>",
         "active: in use", 144},
        {"<path d=\"M0 -4h24\" stroke=\"" EXPANDABLE "\" stroke-width=\"2.4\"/>",
         "reserved, granary expandable", 248},
        {"<path d=\"M0 -4h24\" stroke=\"" CLASSIC "\" stroke-width=\"2\"/>", "reserved, granary classic",
         222},
        {"<path d=\"M0 -4h24\" stroke=\"" PYTORCH "\" stroke-width=\"1.6\" stroke-dasharray=\"7 4\"/>",
         "peak reserved, PyTorch expandable", 284},
        {"<path d=\"M0 -4h24\" stroke=\"" PYTORCH "\" stroke-width=\"1.6\" stroke-dasharray=\"2 4\"/>",
         "peak reserved, PyTorch classic", 0},
    };
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        fprintf(to, "<g transform=\"translate(%.1f %.1f)\">%s</g>\n", x, y, entries[i].mark);
        text(to, x + 32, y, "class=\"key\"", entries[i].words);
        x += entries[i].width;
    }
}

static void head(FILE *to, int height, const char *source, const char *recorded) {
    char words[256];
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n"
            "<title>granary: reserved and active memory over the operations</title>\n"
            "<style>text{font-family:'Helvetica Neue',Helvetica,Arial,'DejaVu Sans',sans-serif;fill:" INK "}"
            ".title{font-size:22px;font-weight:600}.sub{font-size:13px;fill:" MUTED "}.key{font-size:12.5px}"
            ".name{font-size:15px;font-weight:600}.what{font-size:12.5px;fill:" MUTED "}"
            ".ratio{font-size:15px;font-weight:600}.tick{font-size:11.5px;fill:" MUTED "}"
            ".axis{font-size:11.5px;fill:" MUTED "}</style>\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n",
            WIDTH, height, WIDTH, height, WIDTH, height);
    text(to, MARGIN, 44, "class=\"title\"", "Memory reserved for the same work");
    snprintf(words, sizeof words, "granary on %s. %s%sNumbers: peak reserved / peak active, expandable.",
             source, recorded, recorded[0] != 0 ? ". " : "");
    text(to, MARGIN, 66, "class=\"sub\"", words);
    legend(to, MARGIN, 94);
}

int svg_write(const char *path, const char *source, const char *recorded, const struct svg_panel *panels,
              size_t count) {
    int height = HEAD + (int)((count + 1) / 2) * PANEL_HEIGHT + FOOT;
    FILE *to = fopen(path, "w");
    if (to == NULL) return -1;
    head(to, height, source, recorded);
    for (size_t i = 0; i < count; i++)
        panel(to, &panels[i], MARGIN + (double)(i % 2) * COLUMN, HEAD + (double)(i / 2) * PANEL_HEIGHT);
    fprintf(to, "</svg>\n");
    if (ferror(to)) {
        fclose(to);
        errno = EIO;
        return -1;
    }
    return fclose(to);
}
