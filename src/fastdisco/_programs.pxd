"""Programs: the fields, with a line for each."""
from libc.stdint cimport int32_t, uint8_t, uint32_t

from ._core cimport Symbols
from ._label_list cimport LabelList
from ._labels cimport Labels, LabelShape, Shapes
from ._steps cimport Step

cdef enum:
    FIRST_VALUE = 2         # slots before it: ABSENT and EMPTY, which are themselves; then the values of the target
    MOST_TRACES = 16        # ways through the rules that one program knows
    KEPT = 0                # verdicts of an ending; 1 + a rule, or what comes after the rules: the target is dropped
    UNKNOWN = 0xFFFFFFFFu   # the rules have to run

cdef enum:                  # kinds of nodes
    ASKS, EMPTIES, ENDS

cdef enum:                  # answers of a rule
    NO, YES, NOTHING        # NOTHING: an empty value where that is not as good as another
    ANSWERS

cdef enum:                  # in `known`
    KNOWN_ADDRESS = 0
    KNOWN_INSTANCE = 1
    KNOWN_SCHEME = 2
    KNOWN_INTERVAL = 3
    KNOWN_TIMEOUT = 4
    KNOWN_NAMES = 5

cdef struct Ending:
    uint32_t verdict
    LabelShape* shape       # owned; NULL: dropped
    uint32_t* slots         # for each name of the shape where its value is
    uint32_t address, scheme, interval, timeout     # slots of what is asked about after the rules
    uint32_t instance       # slot for the value to be made, or 0

cdef struct Case:           # one answer of EMPTIES
    Case* next
    void* node
    uint32_t count
    uint32_t places[1]      # which of the slots are empty

cdef struct Node:
    uint8_t kind
    bint guard              # the `if` of the rule is asked
    int step                # whose rule is asked
    uint32_t result         # slot of the first word of its outcome
    Node* nodes[3]          # by answer; NULL: no target has gone there yet
    Case* cases
    Ending ending
    uint32_t count
    uint32_t reads[1]       # slots

cdef struct Program:
    Node* root
    uint32_t traces
    uint32_t values         # of a target
    uint32_t count, capacity
    uint32_t* slots
    uint8_t* fixed          # of each slot: it holds a constant, which is owned

cdef class Programs:
    cdef Symbols symbols
    cdef Shapes shapes
    cdef list steps
    cdef LabelList list     # of the relabeling; its values are slots while a way is traced
    cdef const uint32_t* known      # names of labels that mean something after the rules; the relabeling's
    cdef bint prometheus    # the dialect of the steps
    cdef int decided        # rules before it have been asked whether they keep the target, if anybody was
    cdef uint32_t* key      # scratch
    cdef uint32_t* empty
    cdef uint32_t empty_capacity

    cdef Program* program(self, uint32_t values) except NULL
    cdef void free_program(self, Program* program) noexcept
    cdef void free_node(self, Node* node) noexcept
    cdef uint32_t new_slots(self, Program* program, uint32_t count) except? 0
    cdef uint32_t constant(self, Program* program, uint32_t id) except 0
    cdef Node* node(self, int kind, uint32_t count, const uint32_t* reads) except NULL
    cdef void load(self, Program* program, const uint32_t* values) noexcept
    cdef uint32_t find_empties(self, Program* program, Node* node) except? 0xFFFFFFFF
    cdef Node** case_of(self, Node* node, uint32_t count, bint adds) except? NULL
    cdef Ending* follow(self, Program* program, bint is_decided) except? NULL
    cdef Ending* trace(
        self, Program* program, uint32_t count, const uint32_t* names, const int32_t* places, const uint32_t* defaults
    ) except? NULL
    cdef int start_slots(
        self, Program* program, Node*** at, uint32_t count, const uint32_t* names, const int32_t* places, const uint32_t* defaults
    ) except -1
    cdef uint32_t without_empties(self) noexcept
    cdef int drop_empties(self, Program* program, Node*** at) except -1
    cdef int question(self, Program* program, Node*** at, int number, Step asked) except -1
    cdef bint apply_to_slots(self, Program* program, Node*** at, int number, Step step) except -1
    cdef Ending* finish_slots(self, Program* program, Node*** at) except NULL
    cdef Ending* end(self, Node*** at, uint32_t verdict) except NULL
    cdef Labels labels(self, Program* program, Ending* ending)

cdef int answer_of(Step step, const uint32_t* outcome) noexcept
