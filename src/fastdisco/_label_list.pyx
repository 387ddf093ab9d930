"""The labels of one target while rules run: a list of names and values, on which each rule is applied.

Sorted by name at first, then what rules add; names may repeat after renaming. Values are ids, and nothing here looks into them but an
`if` where names repeat: a program has its slots in their place, of which EMPTY is the one for an empty value.
"""
import cython

from libc.stdint cimport uint32_t
from libc.stdlib cimport free, malloc, realloc

from ._bytes cimport same_bytes
from ._core cimport Symbol, Symbols
from ._fields cimport ABSENT, EMPTY
from ._steps cimport COPY_VALUE, KEEP, KEEP_LABELS, RENAME_LABELS, SET_NAMED, Step


cdef inline bint begins(Symbol* symbol, const char* prefix, uint32_t length) noexcept:
    return symbol.length >= length and same_bytes(symbol.text, prefix, length)


@cython.final
@cython.no_gc_clear     # freeing uses its references
cdef class LabelList:
    """Has room for the outcomes of these steps, and counts their effort."""

    def __cinit__(self, Symbols symbols not None, list steps not None):
        cdef Step step
        cdef uint32_t most = 2
        self.symbols = symbols
        for one in steps:
            step = <Step> one
            most = max(most, step.source_count, step.target_count, 0 if step.guard is None else step.guard.source_count)
        self.key = <uint32_t*> malloc(most * sizeof(uint32_t))
        self.result = <uint32_t*> malloc(most * sizeof(uint32_t))
        if self.key == NULL or self.result == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.names)
        free(self.values)
        free(self.key)
        free(self.result)

    cdef void clear(self) noexcept:
        self.count = self.given = 0
        self.repeats = False

    cdef list listed(self):
        cdef uint32_t i
        return [(self.symbols.string(self.names[i]), self.symbols.string(self.values[i])) for i in range(self.count)]

    cdef int apply(self, Step step) except -1:
        """One rule; 1 if it drops the target."""
        cdef uint32_t* key = self.key
        cdef uint32_t* result = self.result
        cdef uint32_t i
        if step.guard is not None:
            if self.repeats:
                result[0] = self.guarded(step.guard)
            else:
                self.read(step.guard, key)
                self.effort += step.guard.outcome(key, result)
            if not result[0]:
                return step.guard_drops
        if step.kind <= KEEP:
            self.read(step, key)
            if step.kind == COPY_VALUE:
                self.effort += 1
                return self.assign(step.targets[0], key[0], step.prometheus)
            self.effort += step.outcome(key, result)
            if step.kind == KEEP:
                return not result[0]
            if step.kind == SET_NAMED:
                if result[0] != ABSENT:
                    self.assign(result[0], result[1], step.prometheus)
                return 0
            for i in range(step.target_count):
                if result[i] != ABSENT:
                    self.assign(step.targets[i], result[i], step.prometheus)
            return 0
        return self.apply_to_names(step)

    cdef int apply_to_names(self, Step step) except -1:
        """A rule over names; 0, for it drops nothing."""
        cdef uint32_t* key = self.key
        cdef uint32_t* result = self.result
        cdef uint32_t i
        cdef uint32_t count = self.count
        if step.kind == KEEP_LABELS:
            i = 0
            while i < self.count:
                self.effort += step.outcome(&self.names[i], result)
                if result[0]:
                    i += 1
                else:
                    self.remove(i)
        elif step.kind == RENAME_LABELS:
            for i in range(count):
                key[0] = self.names[i]
                self.effort += step.outcome(key, result)
                if result[0] != key[0]:
                    self.repeats = True     # perhaps
                    self.names[i] = result[0]
        elif step.prometheus:
            return self.copy_snapshot(step, count)
        else:
            for i in range(count):
                key[0] = self.names[i]
                self.effort += step.outcome(key, result)
                if result[0] != ABSENT and result[0] != key[0]:
                    self.assign(result[0], self.values[i], False)
        return 0

    cdef uint32_t guarded(self, Step guard) except? 2:
        """The outcome of an `if` where names may repeat: any of their values counts, and nothing is remembered."""
        cdef uint32_t i, j
        values = []
        for i in range(guard.source_count):
            found = [self.symbols.string(self.values[j]) for j in range(self.count) if self.names[j] == guard.sources[i]]
            values.append(found or ("",))
        return 1 if guard.rule.function_of_all(values) else 0

    cdef int copy_snapshot(self, Step step, uint32_t count) except -1:
        """Copies labels as they were before the rule; in Prometheus a label copied onto itself counts as set."""
        cdef uint32_t i, result
        copied = []
        for i in range(count):
            self.effort += step.outcome(&self.names[i], &result)
            if result != ABSENT:
                copied.append((result, self.values[i]))
        for name, value in copied:
            self.assign(name, value, True)
        return 0

    cdef int read(self, Step step, uint32_t* key) except -1:
        """The values of a rule's sources; what is not there reads as empty."""
        cdef uint32_t i
        cdef int at
        for i in range(step.source_count):
            at = self.position(step.sources[i])
            key[i] = EMPTY if at < 0 else self.values[at]
        return 0

    cdef int push(self, uint32_t name, uint32_t value) except -1:
        cdef uint32_t* grown
        if self.count == self.capacity:
            self.capacity = self.capacity * 2 if self.capacity else 128
            grown = <uint32_t*> realloc(self.names, self.capacity * sizeof(uint32_t))
            if grown == NULL:
                raise MemoryError
            self.names = grown
            grown = <uint32_t*> realloc(self.values, self.capacity * sizeof(uint32_t))
            if grown == NULL:
                raise MemoryError
            self.values = grown
        self.names[self.count] = name
        self.values[self.count] = value
        self.count += 1
        return 0

    cdef int assign(self, uint32_t name, uint32_t value, bint prometheus) except -1:
        """Sets the first label of that name, or adds one.

        In Prometheus an empty value takes the label away, and what rules have set comes after what there was before.
        """
        cdef int at = self.position(name)
        if at < 0:
            return 0 if prometheus and value == EMPTY else self.push(name, value)
        if prometheus and (value == EMPTY or <uint32_t> at < self.given):
            self.remove(<uint32_t> at)
            return 0 if value == EMPTY else self.push(name, value)
        self.values[at] = value
        return 0

    cdef void remove(self, uint32_t at) noexcept:
        cdef uint32_t i
        for i in range(at, self.count - 1):
            self.names[i] = self.names[i + 1]
            self.values[i] = self.values[i + 1]
        self.count -= 1
        self.given -= at < self.given

    cdef int position(self, uint32_t name) noexcept:
        """The first label of that name, or -1."""
        cdef uint32_t i
        for i in range(self.count):
            if self.names[i] == name:
                return <int> i
        return -1

    cdef uint32_t value_of(self, uint32_t name) noexcept:
        """Empty if there is no such label."""
        cdef int at = self.position(name)
        return EMPTY if at < 0 else self.values[at]

    cdef int strip(self, uint32_t address) noexcept:
        """Takes away empty labels, __meta_ and __tmp. 1: no label is left; 2: there is none of that name, which is `__address__`."""
        cdef uint32_t i
        cdef bint left = False
        cdef uint32_t count = self.count
        self.count = 0
        for i in range(count):
            if self.values[i] != EMPTY and self.is_shown(self.names[i]):
                left = True
                if not begins(self.symbols.at(self.names[i]), b"__tmp", 5):
                    self.names[self.count] = self.names[i]
                    self.values[self.count] = self.values[i]
                    self.count += 1
        if not left:
            return 1
        return 2 if self.position(address) < 0 else 0

    cdef bint is_shown(self, uint32_t name) noexcept:
        """Whether a label of that name outlives the rules, unless it is empty."""
        return name != EMPTY and not begins(self.symbols.at(name), b"__meta_", 7)
