"""Relabeling: the fields, with a line for each."""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from ._batch cimport Batch
from ._core cimport IdTable, Symbols
from ._index cimport index_t
from ._label_list cimport LabelList
from ._labels cimport Labels, LabelShape, Shapes
from ._memo cimport Memo
from ._parts cimport Rendered
from ._programs cimport Ending, Program, Programs
from ._steps cimport Step

cdef enum:
    MOST_FILTERED = 16      # labels that a filter is remembered by
    NO_FILTER = 0xFFFFFFFFu
    NO_END = 0x7FFFFFFFFFFFFFFF

cdef struct Plan:           # for targets of one shape: what rules start from, and what decides about them
    LabelShape* shape       # owned
    uint32_t hash
    uint32_t used           # since the sweep before
    uint32_t count          # labels of the target and the defaults together, by name
    uint32_t* names
    int32_t* places         # of the value: in the target's values, or -1 - place in the defaults
    uint32_t variant        # which filter, since rules over names may need other labels in other shapes
    bint is_kept            # a target was
    Program* program        # NULL: not made yet
    int32_t* filtered       # for each label of the filter its position in `names`, or -1

cdef class Filter:          # labels that decide whether a target is kept, up to the last rule that drops
    cdef Symbols symbols
    cdef uint32_t* names
    cdef uint32_t count
    cdef uint32_t variant   # its place among the filters
    cdef Memo memo          # values -> 0: kept, else 1 + the rule that drops

cdef class Relabeling(IdTable):
    cdef Shapes shapes
    cdef Symbols symbols
    cdef list steps
    cdef Programs programs  # or None
    cdef bint prometheus    # the dialect of the steps
    cdef int step_count
    cdef uint32_t bound
    cdef int filter_length  # rules up to and with the last that may drop; 0: no filter
    cdef list filters       # by variant
    cdef dict variants      # names of a filter -> variant
    cdef uint32_t* default_names
    cdef uint32_t* default_values
    cdef uint32_t default_count
    cdef index_t plan_index
    cdef Plan** plans
    cdef uint32_t plan_count
    cdef uint32_t plan_cursor       # of `forget_doomed`
    cdef uint32_t asked_of  # the filter asked last in this batch, since an object's targets ask it the same;
    cdef uint32_t[MOST_FILTERED] asked  # about these values,
    cdef int answered       # and what it said
    cdef bint is_decided    # a filter has said so: no rule of it drops the target
    cdef LabelList list     # of the target that rules run for
    cdef uint32_t[5] known  # names of labels that mean something after the rules
    cdef Memo instances     # (address, scheme) -> instance
    cdef object make_instance
    cdef object find_refusal        # function of address, interval and timeout, or None
    cdef Memo refusals              # of them -> why the target is refused, or empty
    cdef uint32_t refused           # why the last one was
    cdef int64_t* dropped   # by rule, then for no label left, no address, and being refused
    cdef readonly int64_t seen          # targets asked about
    cdef readonly int64_t evaluated     # targets for which rules ran: a filter's miss, or a target that is kept
    cdef readonly int64_t followed      # of these, targets whose program knew the way

    cdef int64_t collect(
        self, Batch batch, int kind, int profile, uint64_t end, size_t row, int64_t effort, Rendered kept
    ) except? -2
    cdef Labels kept(self, Plan* plan, const uint32_t* values)
    cdef Plan* plan(self, LabelShape* shape) except NULL
    cdef Plan* new_plan(self, LabelShape* shape, uint32_t hash) except NULL
    cdef Filter filter_of(self, LabelShape* shape)
    cdef void forget_plans(self) noexcept
    cdef void forget_plan(self, uint32_t id) noexcept
    cdef int verdict(self, Plan* plan, const uint32_t* values) except -1
    cdef bint decides(self, uint32_t name) except -1
    cdef int start(self, Plan* plan, const uint32_t* values, Filter filter) except -1
    cdef int run(self) except -2
    cdef int run_filter(self) except -2
    cdef uint32_t fixed(self, str text) except 0
    cdef bint is_filtered(self, Filter filter, Plan* plan, uint32_t position) noexcept
    cdef uint32_t instance(self, uint32_t address, uint32_t scheme) except 0
    cdef uint32_t value_at(self, Plan* plan, const uint32_t* values, uint32_t position) noexcept
    cdef int finish(self) except -1
    cdef Ending* ending_of(self, Plan* plan, const uint32_t* values) except? NULL
    cdef Labels complete(self, Program* program, Ending* ending)
    cdef bint refuses(self, Program* program, Ending* ending) except -1
    cdef bint survives(self, LabelShape* shape, const uint32_t* values) except -1
    cdef int refuse(self, uint32_t address, uint32_t interval, uint32_t timeout) except -1
    cdef Labels labels(self)
