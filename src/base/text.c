/* SPDX-License-Identifier: Apache-2.0
 * Sizes in and out of words, in whole numbers throughout: no rounding surprises, no locale. */
#include "base/text.h"

#include <stdio.h>
#include <string.h>

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Reads digits from *at on. False when the number does not fit; no digits read as 0. */
static bool read_digits(const char *s, size_t len, size_t *at, uint64_t *out) {
    uint64_t value = 0;
    bool fits = true;
    for (; *at < len && is_digit(s[*at]); (*at)++)
        fits = fits && !__builtin_mul_overflow(value, 10, &value) &&
               !__builtin_add_overflow(value, (uint64_t)(s[*at] - '0'), &value);
    *out = value;
    return fits;
}

/* What stands behind a number: "", "B", or one of KMGT with or without "iB". 0 when none of these. */
static uint64_t read_unit(const char *s, size_t len) {
    static const char letters[] = "KMGT";
    if (len == 0 || (len == 1 && s[0] == 'B')) return 1;
    char upper = s[0] >= 'a' && s[0] <= 'z' ? (char)(s[0] - 'a' + 'A') : s[0];
    const char *letter = memchr(letters, upper, sizeof letters - 1);
    if (letter == NULL) return 0;
    bool lone = len == 1;
    bool full = len == 3 && s[0] == upper && s[1] == 'i' && s[2] == 'B';
    return lone || full ? (uint64_t)1 << 10 * (letter - letters + 1) : 0;
}

enum gr_text_result gr_text_parse_whole(const char *s, size_t len, size_t *out) {
    size_t at = 0;
    uint64_t value;
    bool fits = read_digits(s, len, &at, &value);
    if (len == 0 || at < len) return GR_TEXT_SYNTAX;
    if (!fits || value > SIZE_MAX) return GR_TEXT_OVERFLOW;
    *out = (size_t)value;
    return GR_TEXT_OK;
}

enum gr_text_result gr_text_parse_size(const char *s, size_t len, size_t *out) {
    size_t at = 0, point = 0, stop = 0; /* decimals lie in (point, stop) */
    uint64_t whole, part = 0, bytes;
    bool fits = read_digits(s, len, &at, &whole);
    size_t digits = at;
    if (at < len && s[at] == '.') {
        point = at++;
        while (at < len && is_digit(s[at])) at++;
        stop = at;
        digits = stop - 1;
    }
    if (digits == 0 || (stop != 0 && stop == point + 1)) return GR_TEXT_SYNTAX;

    if (at < len && s[at] == ' ') {
        at++;
        if (at == len) return GR_TEXT_SYNTAX;
    }
    uint64_t unit = read_unit(s + at, len - at);
    if (unit == 0 || (stop != 0 && unit == 1)) return GR_TEXT_SYNTAX;

    /* From the last decimal to the first: dropping the rest at each step drops it in all. */
    for (size_t i = stop; stop != 0 && i > point + 1; i--)
        part = ((uint64_t)(s[i - 1] - '0') * unit + part) / 10;
    if (!fits || __builtin_mul_overflow(whole, unit, &bytes) || __builtin_add_overflow(bytes, part, &bytes) ||
        bytes > SIZE_MAX)
        return GR_TEXT_OVERFLOW;
    *out = (size_t)bytes;
    return GR_TEXT_OK;
}

enum gr_text_result gr_text_parse_decimal(const char *s, size_t len, double *out) {
    static const uint64_t enough = 100000000000000000; /* 10^17: more digits cannot be told apart */
    uint64_t digits = 0;
    double scale = 1;
    size_t seen = 0, point = len;
    bool overflow = false;
    for (size_t at = 0; at < len; at++) {
        if (s[at] == '.' && point == len) {
            point = at;
            continue;
        }
        if (!is_digit(s[at])) return GR_TEXT_SYNTAX; /* also behind too many digits: it may be a size */
        seen++;
        if (digits < enough) {
            digits = digits * 10 + (uint64_t)(s[at] - '0');
            if (point < at) scale *= 10;
        } else if (point == len) {
            overflow = true;
        }
    }
    if (seen == 0 || point == len - 1) return GR_TEXT_SYNTAX;
    if (overflow) return GR_TEXT_OVERFLOW;
    *out = (double)digits / scale; /* both are exact up to 15 digits, so the quotient is rounded once */
    return GR_TEXT_OK;
}

const char *gr_text_size(char *buffer, size_t room, uint64_t bytes) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        gr_text_put(buffer, room, "%u B", (unsigned)bytes);
        return buffer;
    }
    /* In hundredths of the unit; what would read 1024.00 is 1.00 of the next one. Units whose rest
     * times 100 does not fit are first cut to 1/1024, far below what two decimals show. */
    uint64_t hundredths;
    size_t k = gr_log2(bytes) / 10 - 1;
    for (;; k++) {
        unsigned shift = 10 * ((unsigned)k + 1), cut = shift > 50 ? 10 : 0;
        uint64_t unit = (uint64_t)1 << (shift - cut), scaled = bytes >> cut;
        hundredths = scaled / unit * 100 + (scaled % unit * 100 + unit / 2) / unit;
        if (hundredths < 102400 || k + 1 == GR_COUNT(units)) break;
    }
    gr_text_put(buffer, room, "%u.%02u %s", (unsigned)(hundredths / 100), (unsigned)(hundredths % 100),
                units[k]);
    return buffer;
}

void gr_text_add_list(char *buffer, size_t room, const char *format, va_list arguments) {
    size_t used = strlen(buffer);
    (void)vsnprintf(buffer + used, room - used, format, arguments);
}

void gr_text_add(char *buffer, size_t room, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    gr_text_add_list(buffer, room, format, arguments);
    va_end(arguments);
}

void gr_text_put(char *buffer, size_t room, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    buffer[0] = '\0';
    gr_text_add_list(buffer, room, format, arguments);
    va_end(arguments);
}

void gr_text_add_exact(char *buffer, size_t room, size_t bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t k = 0;
    for (; bytes != 0 && bytes % 1024 == 0 && k + 1 < GR_COUNT(units); k++) bytes /= 1024;
    gr_text_add(buffer, room, "%zu%s", bytes, units[k]);
}

void gr_text_add_decimal(char *buffer, size_t room, double number) {
    char text[96] = "0";
    double scale = 1, back;
    for (int places = 0; places <= 40 && number * scale < 9e18; places++, scale *= 10) {
        uint64_t digits = (uint64_t)(number * scale + 0.5);
        int len = snprintf(text, sizeof text, "%0*llu", places + 1, (unsigned long long)digits);
        if (places > 0) { /* the point, by hand: printf's depends on the locale */
            memmove(text + len - places + 1, text + len - places, (size_t)places + 1);
            text[len - places] = '.';
        }
        if (gr_text_parse_decimal(text, strlen(text), &back) == GR_TEXT_OK && back >= number &&
            back <= number)
            break;
    }
    gr_text_add(buffer, room, "%s", text);
}

void gr_text_quote(char *buffer, size_t room, const char *s, size_t len) {
    size_t kept = len < room ? len : room - 1;
    for (size_t i = 0; i < kept; i++) buffer[i] = s[i] >= ' ' && s[i] <= '~' ? s[i] : '?';
    buffer[kept] = '\0';
}
