/* Hash index: 32-bit hash -> 32-bit id, grown a little at each insertion.
 *
 * Keys stay with their owner: a probe gives the ids whose hash is equal, and the owner compares. A full table is not rehashed
 * at once (a million entries would hold the event loop for tens of milliseconds): old and new lie side by side, and each
 * insertion moves a few entries. Ids are from 1 to 0xfffffffe.
 */
#ifndef FASTDISCO_INDEX_H
#define FASTDISCO_INDEX_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define INDEX_GONE 0xffffffffu /* an entry that was removed; probes go on past it */
#define INDEX_MOVED_AT_ONCE 16

typedef struct {
    uint64_t *entries; /* hash << 32 | id; 0: free */
    size_t mask;       /* number of entries - 1; a power of two */
    size_t used;       /* entries that are not free, removed ones too */
} index_side_t;

typedef struct {
    index_side_t now, old;
    size_t moved; /* entries of `old` before this one have been moved */
    size_t count; /* ids held */
} index_t;

typedef struct {
    const index_t *index;
    const index_side_t *side;
    size_t at;
    uint32_t hash;
} index_probe_t;

static inline index_probe_t index_probe(const index_t *x, uint32_t hash) {
    index_probe_t p = {x, &x->now, hash & x->now.mask, hash};
    return p;
}

/* The next id with the probe's hash, or 0. */
static inline uint32_t index_next(index_probe_t *p) {
    for (;;) {
        if (p->side->entries) {
            uint64_t entry;
            while ((entry = p->side->entries[p->at]) != 0) {
                p->at = (p->at + 1) & p->side->mask;
                if ((uint32_t)(entry >> 32) == p->hash && (uint32_t)entry != INDEX_GONE) return (uint32_t)entry;
            }
        }
        if (p->side != &p->index->now || !p->index->old.entries) return 0;
        p->side = &p->index->old;
        p->at = p->hash & p->side->mask;
    }
}

static inline void index_prefetch(const index_t *x, uint32_t hash) {
    if (x->now.entries) __builtin_prefetch(&x->now.entries[hash & x->now.mask]);
}

static inline void index_put(index_side_t *side, uint64_t entry) {
    size_t at = (size_t)(entry >> 32) & side->mask;
    while (side->entries[at]) at = (at + 1) & side->mask;
    side->entries[at] = entry;
    side->used++;
}

static inline void index_move(index_t *x, size_t most) {
    if (!x->old.entries) return;
    for (; most && x->moved <= x->old.mask; most--, x->moved++) {
        uint64_t entry = x->old.entries[x->moved];
        if (entry && (uint32_t)entry != INDEX_GONE) {
            index_put(&x->now, entry);
            /* marked, not freed: probes of the old side must still pass here */
            x->old.entries[x->moved] |= INDEX_GONE;
        }
    }
    if (x->moved > x->old.mask) {
        free(x->old.entries);
        memset(&x->old, 0, sizeof x->old);
    }
}

/* Adds an id that is not there yet; 0 if memory is short. */
static inline int index_add(index_t *x, uint32_t hash, uint32_t id) {
    index_move(x, INDEX_MOVED_AT_ONCE);
    if (!x->now.entries || (x->now.used + 1) * 4 > (x->now.mask + 1) * 3) {
        size_t size = 64;
        index_move(x, (size_t)-1);
        /* a quarter of the old size at least: it must not be full again before all of the old has been moved */
        while (size < x->count * 2 || size * 4 < x->now.mask) size *= 2;
        uint64_t *entries = calloc(size, sizeof *entries);
        if (!entries) return 0;
        x->old = x->now;
        x->moved = 0;
        x->now.entries = entries;
        x->now.mask = size - 1;
        x->now.used = 0;
    }
    index_put(&x->now, (uint64_t)hash << 32 | id);
    x->count++;
    return 1;
}

static inline void index_remove(index_t *x, uint32_t hash, uint32_t id) {
    uint64_t wanted = (uint64_t)hash << 32 | id;
    index_side_t *sides[2] = {&x->now, &x->old};
    for (int i = 0; i < 2; i++) {
        if (!sides[i]->entries) continue;
        for (size_t at = hash & sides[i]->mask; sides[i]->entries[at]; at = (at + 1) & sides[i]->mask)
            if (sides[i]->entries[at] == wanted) {
                sides[i]->entries[at] |= INDEX_GONE;
                x->count--;
                return;
            }
    }
}

static inline void index_free(index_t *x) {
    free(x->now.entries);
    free(x->old.entries);
    memset(x, 0, sizeof *x);
}

/* Of ids, which nobody outside chooses: not seeded. */
static inline uint32_t hash_words(const uint32_t *words, uint32_t count) {
    uint64_t h = 0x9e3779b97f4a7c15u ^ count;
    for (uint32_t i = 0; i < count; i++) {
        h = (h ^ words[i]) * 0xd6e8feb86659fd93u;
        h ^= h >> 32;
    }
    return (uint32_t)h;
}

#endif
