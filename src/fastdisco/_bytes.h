/* Short strings, eight bytes at a time: comparing, classifying, hashing. No byte outside the string is read. */
#ifndef FASTDISCO_BYTES_H
#define FASTDISCO_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t load8(const char *p) {
    uint64_t word;
    memcpy(&word, p, 8);
    return word;
}

static inline uint64_t load4(const char *p) {
    uint32_t word;
    memcpy(&word, p, 4);
    return word;
}

/* The ends of a string: with its length they are all of it, up to 16 bytes. */
typedef struct {
    uint64_t first, last;
} key_words_t;

static inline key_words_t key_words(const char *p, size_t length) {
    key_words_t words = {0, 0};
    if (length >= 8) {
        words.first = load8(p);
        words.last = load8(p + length - 8);
    } else if (length >= 4) {
        words.first = load4(p) | load4(p + length - 4) << 32;
    } else {
        for (size_t i = 0; i < length; i++) words.first |= (uint64_t)(uint8_t)p[i] << (8 * i);
    }
    return words;
}

static inline int same_words(key_words_t a, key_words_t b) { return a.first == b.first && a.last == b.last; }

/* Whether two strings of one length are equal; no call, since most are short. */
static inline int same_bytes(const char *a, const char *b, size_t length) {
    if (length >= 8) {
        size_t last = length - 8;
        for (size_t i = 0; i < last; i += 8)
            if (load8(a + i) != load8(b + i)) return 0;
        return load8(a + last) == load8(b + last);
    }
    if (length >= 4) return load4(a) == load4(b) && load4(a + length - 4) == load4(b + length - 4);
    for (size_t i = 0; i < length; i++)
        if (a[i] != b[i]) return 0;
    return 1;
}

#define BYTES_CONTROL 1 /* some byte is below 0x20 */
#define BYTES_WIDE 2    /* some byte is no ASCII */

static inline int byte_classes(const char *p, size_t length) {
    const uint64_t high = 0x8080808080808080u;
    uint64_t wide = 0, control = 0, word;
    size_t i = 0;
    for (;;) {
        if (i + 8 <= length) {
            word = load8(p + i);
        } else if (i == length) {
            break;
        } else {
            word = high >> 2; /* spaces after the end */
            memcpy(&word, p + i, length - i);
        }
        wide |= word & high;
        /* adding 0x60 carries into the top bit of what is 0x20 or more */
        control |= ~(((word & ~high) + 0x6060606060606060u) | word) & high;
        i += 8;
        if (i >= length) break;
    }
    return (control ? BYTES_CONTROL : 0) | (wide ? BYTES_WIDE : 0);
}

/* Seeded, so that whoever chooses the strings cannot choose collisions. Folded 64x64 products, 16 bytes a step. */
static inline uint64_t hash_fold(uint64_t a, uint64_t b) {
    __uint128_t product = (__uint128_t)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint32_t hash_bytes(const char *p, size_t length, uint64_t seed) {
    uint64_t a = 0, b = 0, h = seed ^ (length * 0xa0761d6478bd642fu);
    size_t rest = length;
    for (; rest > 16; rest -= 16, p += 16) {
        memcpy(&a, p, 8);
        memcpy(&b, p + 8, 8);
        h = hash_fold(a ^ 0xe7037ed1a0b428dbu, b ^ h);
    }
    if (rest >= 8) {
        memcpy(&a, p, 8);
        memcpy(&b, p + rest - 8, 8);
    } else if (rest >= 4) {
        uint32_t first, last;
        memcpy(&first, p, 4);
        memcpy(&last, p + rest - 4, 4);
        a = first;
        b = last;
    } else if (rest) {
        a = (uint64_t)(uint8_t)p[0] << 16 | (uint64_t)(uint8_t)p[rest >> 1] << 8 | (uint8_t)p[rest - 1];
        b = 0;
    } else {
        a = b = 0;
    }
    h = hash_fold(a ^ 0x8ebc6af09c88c6e3u, b ^ h);
    h = hash_fold(h ^ 0x589965cc75374cc3u, seed ^ 0x1d8e4e27c47d124fu);
    return (uint32_t)(h ^ h >> 32);
}

#endif
