"""One rule over symbols: its labels as ids, its function, and the outcomes that it has given.

    ids of the values that a rule reads -> memo, else its function -> ids
"""
import cython

from libc.stdint cimport uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from ._core cimport Symbols
from ._fields cimport ABSENT
from ._memo cimport Memo

KINDS_OF_RULES = ("set", "copy value", "set named", "keep", "copy labels", "rename labels", "keep labels")

cdef enum:
    ASKING = 32             # look-ups that take as long as a rule's function


@cython.final
@cython.no_gc_clear     # freeing uses its references
cdef class Step:
    """A rule with its labels as symbols and its remembered outcomes."""

    def __cinit__(self, Symbols symbols not None, rule, uint32_t bound=65536):
        self.symbols = symbols
        self.rule = rule
        self.kind = KINDS_OF_RULES.index(rule.kind)
        self.function = rule.function
        self.source_count = len(rule.sources)
        self.target_count = len(rule.targets)
        self.hold_names(rule.sources, &self.sources)
        self.hold_names(rule.targets, &self.targets)
        self.prometheus = getattr(rule, "prometheus", False)
        guard = getattr(rule, "guard", None)
        if guard is not None:
            self.guard = Step(symbols, _Condition(guard), bound)
            self.guard_drops = guard.drops
        cdef uint32_t results = 1
        if self.kind == SET:
            results = self.target_count
        elif self.kind == SET_NAMED:
            results = 2
        # an outcome of a condition is a number; of the others symbols, ABSENT for no change
        if self.kind == KEEP or self.kind == KEEP_LABELS:
            self.memo = Memo(symbols, self.source_count if self.kind == KEEP else 1, 1, False, bound)
        elif self.kind <= SET_NAMED:
            self.memo = Memo(symbols, self.source_count, results, True, bound)
        else:
            self.memo = Memo(symbols, 1, 1, True, bound, True)

    def __dealloc__(self):
        cdef uint32_t i
        for i in range(self.source_count if self.sources != NULL else 0):
            self.symbols.drop(self.sources[i])
        for i in range(self.target_count if self.targets != NULL else 0):
            self.symbols.drop(self.targets[i])
        free(self.sources)
        free(self.targets)

    @property
    def remembered(self) -> int:
        """Outcomes remembered now, those of the `if` too."""
        return len(self.memo) + (0 if self.guard is None else len(self.guard.memo))

    @property
    def given_up(self) -> bool:
        """Whether remembering did not pay, and was stopped."""
        return self.memo.given_up

    cdef int hold_names(self, tuple names, uint32_t** to) except -1:
        cdef uint32_t i = 0
        to[0] = <uint32_t*> malloc((len(names) + 1) * sizeof(uint32_t))
        if to[0] == NULL:
            raise MemoryError
        for name in names:
            to[0][i] = self.symbols.intern_str(name)
            self.symbols.hold(to[0][i])
            i += 1
        return 0

    cdef int outcome(self, const uint32_t* key, uint32_t* result) except -1:
        """The outcome for these ids, as many words as the rule has results; gives what effort it took."""
        cdef uint32_t* found = self.memo.find(key)
        if found != NULL:
            memcpy(result, found, self.memo.results * sizeof(uint32_t))
            return 1
        self.ask(key, result)
        self.memo.remember(key, result)
        return ASKING

    cdef bint reads(self, list names):
        """Whether one of the names is among the sources."""
        cdef uint32_t i
        for i in range(self.source_count):
            if self.sources[i] in names:
                return True
        return False

    cdef int ask(self, const uint32_t* key, uint32_t* result) except -1:
        """Runs the function."""
        cdef uint32_t i
        if self.kind >= COPY_LABELS:
            answer = self.function(self.symbols.string(key[0]))
            if self.kind == KEEP_LABELS:
                result[0] = 1 if answer else 0
            else:
                result[0] = ABSENT if answer is None else self.symbols.intern_str(answer)
            return 0
        answer = self.function(tuple([self.symbols.string(key[i]) for i in range(self.source_count)]))
        if self.kind == KEEP:
            result[0] = 1 if answer else 0
            return 0
        for i in range(self.memo.results):
            result[i] = ABSENT if answer is None else self.symbols.intern_str(answer[i])
        return 0


class _Condition:
    """An `if`, as a rule that keeps."""

    kind = "keep"
    targets = ()

    def __init__(self, guard):
        self.sources = guard.sources
        self.function = guard.function
        self.function_of_all = guard.function_of_all
