/* Finds, in the bytes of one JSON value, string ends, brackets and where the value ends.
 *
 *   bytes -> blocks of 64 -> three bit masks a block -> end of the value, next string mark, end of a bracketed value
 *
 * One bit a byte, lowest bit first. For the bytes
 *
 *     { " a " : [ " \ " } " ] }
 *     . 1 . 1 . . 1 1 . . 1 . .      marks: quotes that are not escaped, and backslashes
 *     1 . . . . 1 . . . . . . .      opens: { and [ outside strings
 *     . . . . . . . . . . . 1 1      closes: } and ] outside strings
 *
 * What is not checked: that brackets of a pair are of one kind, what stands between strings and brackets, escapes,
 * control characters and UTF-8. Whoever reads a part checks that part.
 *
 * No Python here. Kernels do the same and are chosen at run time: avx2, sse2, neon, scalar.
 */
#ifndef FASTDISCO_SCAN_H
#define FASTDISCO_SCAN_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define SCAN_BLOCK 64
#define SCAN_INLINE static inline __attribute__((always_inline))

/* The masks of one value, and the state in which the next block begins. A value may grow by chunks; whole blocks are kept. */
typedef struct {
    uint64_t *marks, *opens, *closes;
    size_t capacity;    /* blocks that the masks have room for; two zero blocks more are allocated for reads past the end */
    size_t blocks;      /* whole blocks done */
    uint64_t in_string; /* all ones: the next block begins inside a string */
    uint64_t escaped;   /* 1: the first byte of the next block is escaped */
    size_t depth;       /* brackets open before the next block */
} scan_t;

typedef struct {
    uint64_t quote, backslash, open, close, strings;
} scan_block_t;

/* lex: goes on with a value of which `length` bytes are there; returns the number of bytes up to and with its last bracket,
 *      or 0 if it goes on. The value must begin with a bracket. Masks are valid for all `length` bytes afterwards.
 * skip: the index after the bracketed value that begins at `from`, or `end` if it does not close before. */
typedef struct {
    const char *name;
    size_t (*lex)(scan_t *, const uint8_t *, size_t length);
    size_t (*skip)(const scan_t *, size_t from, size_t end);
} scan_kernel_t;

static inline void scan_start(scan_t *s) {
    s->blocks = 0;
    s->in_string = s->escaped = 0;
    s->depth = 0;
}

/* Room for the masks of `length` bytes; 0 if memory is short. */
static inline int scan_reserve(scan_t *s, size_t length) {
    size_t need = length / SCAN_BLOCK + 1, capacity = s->capacity ? s->capacity : 256;
    if (need <= s->capacity) return 1;
    while (capacity < need) capacity *= 2;
    uint64_t **masks[3] = {&s->marks, &s->opens, &s->closes};
    for (int i = 0; i < 3; i++) {
        uint64_t *grown = realloc(*masks[i], (capacity + 2) * sizeof(uint64_t));
        if (!grown) return 0;
        *masks[i] = grown;
    }
    s->capacity = capacity;
    return 1;
}

static inline void scan_free(scan_t *s) {
    free(s->marks);
    free(s->opens);
    free(s->closes);
    memset(s, 0, sizeof *s);
}

/* Which bytes follow an odd run of backslashes. Runs that begin at odd bits carry, by addition, into the bit after them. */
SCAN_INLINE uint64_t scan_escapes(uint64_t backslash, uint64_t *escaped) {
    const uint64_t even = 0x5555555555555555u;
    if (!backslash) {
        uint64_t first = *escaped;
        *escaped = 0;
        return first;
    }
    backslash &= ~*escaped;
    uint64_t follows = backslash << 1 | *escaped;
    uint64_t odd_starts = backslash & ~even & ~follows, sum;
    *escaped = __builtin_add_overflow(odd_starts, backslash, &sum);
    return (even ^ (sum << 1)) & follows;
}

/* Bit i of the result: the parity of the bits up to i. */
SCAN_INLINE uint64_t scan_parity(uint64_t bits) {
    bits ^= bits << 1;
    bits ^= bits << 2;
    bits ^= bits << 4;
    bits ^= bits << 8;
    bits ^= bits << 16;
    bits ^= bits << 32;
    return bits;
}

/* Where, among the brackets of one block, the depth comes back to zero: the bit after it, or 0. `depth` is moved on. */
SCAN_INLINE unsigned scan_balance(uint64_t open, uint64_t close, size_t *depth) {
    size_t closing = (size_t)__builtin_popcountll(close);
    if (closing < *depth) {
        *depth += (size_t)__builtin_popcountll(open) - closing;
        return 0;
    }
    for (uint64_t both = open | close; both; both &= both - 1) {
        uint64_t bit = both & -both;
        if (open & bit) ++*depth;
        else if (*depth <= 1) return (unsigned)__builtin_ctzll(bit) + 1;
        else --*depth;
    }
    return 0;
}

/* Stores the masks of one block, whose quotes are unescaped and whose strings are known; returns the value's end or 0. */
SCAN_INLINE size_t scan_store(scan_t *s, scan_block_t *b) {
    uint64_t strings = b->strings ^ s->in_string;
    s->in_string = (uint64_t)((int64_t)strings >> 63);
    size_t i = s->blocks++;
    s->marks[i] = b->quote | b->backslash;
    s->opens[i] = b->open & ~strings;
    s->closes[i] = b->close & ~strings;
    unsigned after = scan_balance(s->opens[i], s->closes[i], &s->depth);
    if (!after) return 0;
    s->marks[i + 1] = s->opens[i + 1] = s->closes[i + 1] = 0;
    return i * SCAN_BLOCK + after;
}

SCAN_INLINE int scan_whole(const scan_t *s, size_t length) { return (s->blocks + 1) * SCAN_BLOCK <= length; }

/* The bytes after the last whole block, padded; they are done again when more have come. */
SCAN_INLINE size_t scan_tail(const scan_t *s, const uint8_t *p, size_t length, uint8_t *padded) {
    size_t rest = length - s->blocks * SCAN_BLOCK;
    memset(padded, ' ', SCAN_BLOCK);
    memcpy(padded, p + s->blocks * SCAN_BLOCK, rest);
    return rest;
}

/* After the tail: takes the state back, so that the block counts as not done. */
SCAN_INLINE void scan_rewind(scan_t *s, const scan_t *before) {
    size_t i = s->blocks;
    s->marks[i] = s->opens[i] = s->closes[i] = 0;
    s->blocks = before->blocks;
    s->in_string = before->in_string;
    s->escaped = before->escaped;
    s->depth = before->depth;
}

SCAN_INLINE size_t scan_skip_any(const scan_t *s, size_t from, size_t end) {
    size_t i = from / SCAN_BLOCK, depth = 0;
    uint64_t keep = ~(uint64_t)0 << (from % SCAN_BLOCK);
    for (; i * SCAN_BLOCK < end; i++, keep = ~(uint64_t)0) {
        unsigned after = scan_balance(s->opens[i] & keep, s->closes[i] & keep, &depth);
        if (after) {
            size_t index = i * SCAN_BLOCK + after;
            return index < end ? index : end;
        }
    }
    return end;
}

/* The first mark at or after `from`, or `end`. */
static inline size_t scan_mark(const scan_t *s, size_t from, size_t end) {
    size_t i = from / SCAN_BLOCK;
    uint64_t bits = s->marks[i] >> (from % SCAN_BLOCK);
    if (bits) return from + (size_t)__builtin_ctzll(bits);
    for (i++; i * SCAN_BLOCK < end; i++)
        if (s->marks[i]) return i * SCAN_BLOCK + (size_t)__builtin_ctzll(s->marks[i]);
    return end;
}

/* ---- scalar ---- */

static inline void scan_raw_scalar(const uint8_t *p, scan_block_t *b) {
    memset(b, 0, sizeof *b);
    for (unsigned i = 0; i < SCAN_BLOCK; i++) {
        uint64_t bit = (uint64_t)1 << i;
        switch (p[i]) {
            case '"': b->quote |= bit; break;
            case '\\': b->backslash |= bit; break;
            case '{': case '[': b->open |= bit; break;
            case '}': case ']': b->close |= bit; break;
        }
    }
}

static inline size_t scan_step_scalar(scan_t *s, const uint8_t *p) {
    scan_block_t b;
    scan_raw_scalar(p, &b);
    b.quote &= ~scan_escapes(b.backslash, &s->escaped);
    b.strings = scan_parity(b.quote);
    return scan_store(s, &b);
}

static size_t scan_lex_scalar(scan_t *s, const uint8_t *p, size_t length) {
    size_t end = 0;
    uint8_t padded[SCAN_BLOCK];
    while (!end && scan_whole(s, length)) end = scan_step_scalar(s, p + s->blocks * SCAN_BLOCK);
    if (end) return end;
    scan_t before = *s;
    scan_tail(s, p, length, padded);
    end = scan_step_scalar(s, padded);
    scan_rewind(s, &before);
    return end;
}

static size_t scan_skip_scalar(const scan_t *s, size_t from, size_t end) { return scan_skip_any(s, from, end); }

/* ---- x86-64: a bracket is { or [ with bit 5 set, so one comparison finds both ---- */

#if defined(__x86_64__)
#define SCAN_AVX2 __attribute__((target("avx2,pclmul,popcnt,bmi")))

SCAN_AVX2 static inline uint64_t scan_same_avx2(__m256i low, __m256i high, char c) {
    __m256i wanted = _mm256_set1_epi8(c);
    uint32_t first = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, wanted));
    uint32_t second = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, wanted));
    return (uint64_t)second << 32 | first;
}

SCAN_AVX2 static inline size_t scan_step_avx2(scan_t *s, const uint8_t *p) {
    __m256i low = _mm256_loadu_si256((const __m256i *)p), high = _mm256_loadu_si256((const __m256i *)(p + 32));
    __m256i bit5 = _mm256_set1_epi8(0x20);
    scan_block_t b;
    b.quote = scan_same_avx2(low, high, '"');
    b.backslash = scan_same_avx2(low, high, '\\');
    low = _mm256_or_si256(low, bit5);
    high = _mm256_or_si256(high, bit5);
    b.open = scan_same_avx2(low, high, '{');
    b.close = scan_same_avx2(low, high, '}');
    b.quote &= ~scan_escapes(b.backslash, &s->escaped);
    /* a product without carries by all ones is the parity of the bits below */
    __m128i product = _mm_clmulepi64_si128(_mm_set_epi64x(0, (long long)b.quote), _mm_set1_epi8((char)0xff), 0);
    b.strings = (uint64_t)_mm_cvtsi128_si64(product);
    return scan_store(s, &b);
}

SCAN_AVX2 static size_t scan_lex_avx2(scan_t *s, const uint8_t *p, size_t length) {
    size_t end = 0;
    uint8_t padded[SCAN_BLOCK];
    while (!end && scan_whole(s, length)) end = scan_step_avx2(s, p + s->blocks * SCAN_BLOCK);
    if (end) return end;
    scan_t before = *s;
    scan_tail(s, p, length, padded);
    end = scan_step_avx2(s, padded);
    scan_rewind(s, &before);
    return end;
}

SCAN_AVX2 static size_t scan_skip_avx2(const scan_t *s, size_t from, size_t end) { return scan_skip_any(s, from, end); }

static inline uint64_t scan_same_sse2(const __m128i *v, char c) {
    __m128i wanted = _mm_set1_epi8(c);
    uint64_t bits = 0;
    for (int i = 0; i < 4; i++) bits |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(v[i], wanted)) << (16 * i);
    return bits;
}

static inline size_t scan_step_sse2(scan_t *s, const uint8_t *p) {
    __m128i v[4], bit5 = _mm_set1_epi8(0x20);
    scan_block_t b;
    for (int i = 0; i < 4; i++) v[i] = _mm_loadu_si128((const __m128i *)(p + 16 * i));
    b.quote = scan_same_sse2(v, '"');
    b.backslash = scan_same_sse2(v, '\\');
    for (int i = 0; i < 4; i++) v[i] = _mm_or_si128(v[i], bit5);
    b.open = scan_same_sse2(v, '{');
    b.close = scan_same_sse2(v, '}');
    b.quote &= ~scan_escapes(b.backslash, &s->escaped);
    b.strings = scan_parity(b.quote);
    return scan_store(s, &b);
}

static size_t scan_lex_sse2(scan_t *s, const uint8_t *p, size_t length) {
    size_t end = 0;
    uint8_t padded[SCAN_BLOCK];
    while (!end && scan_whole(s, length)) end = scan_step_sse2(s, p + s->blocks * SCAN_BLOCK);
    if (end) return end;
    scan_t before = *s;
    scan_tail(s, p, length, padded);
    end = scan_step_sse2(s, padded);
    scan_rewind(s, &before);
    return end;
}
#endif

/* ---- arm64 ---- */

#if defined(__aarch64__)
static inline uint64_t scan_same_neon(const uint8x16_t *v, uint8_t c) {
    static const uint8_t weights[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t wanted = vdupq_n_u8(c), weight = vld1q_u8(weights), m[4];
    for (int i = 0; i < 4; i++) m[i] = vandq_u8(vceqq_u8(v[i], wanted), weight);
    uint8x16_t sum = vpaddq_u8(vpaddq_u8(m[0], m[1]), vpaddq_u8(m[2], m[3]));
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(sum, sum)), 0);
}

static inline size_t scan_step_neon(scan_t *s, const uint8_t *p) {
    uint8x16_t v[4], bit5 = vdupq_n_u8(0x20);
    scan_block_t b;
    for (int i = 0; i < 4; i++) v[i] = vld1q_u8(p + 16 * i);
    b.quote = scan_same_neon(v, '"');
    b.backslash = scan_same_neon(v, '\\');
    for (int i = 0; i < 4; i++) v[i] = vorrq_u8(v[i], bit5);
    b.open = scan_same_neon(v, '{');
    b.close = scan_same_neon(v, '}');
    b.quote &= ~scan_escapes(b.backslash, &s->escaped);
    b.strings = scan_parity(b.quote);
    return scan_store(s, &b);
}

static size_t scan_lex_neon(scan_t *s, const uint8_t *p, size_t length) {
    size_t end = 0;
    uint8_t padded[SCAN_BLOCK];
    while (!end && scan_whole(s, length)) end = scan_step_neon(s, p + s->blocks * SCAN_BLOCK);
    if (end) return end;
    scan_t before = *s;
    scan_tail(s, p, length, padded);
    end = scan_step_neon(s, padded);
    scan_rewind(s, &before);
    return end;
}
#endif

/* The kernel of that name if this processor has it, the best one for an empty name; else NULL. */
static inline const scan_kernel_t *scan_kernel(const char *name) {
    static const scan_kernel_t kernels[] = {
#if defined(__x86_64__)
        {"avx2", scan_lex_avx2, scan_skip_avx2},
        {"sse2", scan_lex_sse2, scan_skip_scalar},
#elif defined(__aarch64__)
        {"neon", scan_lex_neon, scan_skip_scalar},
#endif
        {"scalar", scan_lex_scalar, scan_skip_scalar},
    };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
#if defined(__x86_64__)
        if (!strcmp(kernels[i].name, "avx2")
            && !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("bmi")))
            continue;
#endif
        if (!*name || !strcmp(kernels[i].name, name)) return &kernels[i];
    }
    return NULL;
}

#endif
