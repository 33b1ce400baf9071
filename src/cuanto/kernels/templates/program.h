// Header of the index tables (schedule/table.py) for both table-driven kernels.
enum { OP_SUM, OP_UNIFORM, OP_RCP, OP_SQRT, OP_EXP, OP_BOYS, OP_OUT, OP_RSQRT };

struct Program {
    const int* table;
    const REAL* constants;
    FN_MEMBER const int* code() const { return table + table[0]; }
    FN_MEMBER int size() const { return table[1]; }
    FN_MEMBER int uniforms() const { return table[2]; }
    FN_MEMBER int slots() const { return table[3]; }
    FN_MEMBER int level_count() const { return table[4]; }
    FN_MEMBER int lane_inputs() const { return table[5]; }
    FN_MEMBER int uniform_inputs() const { return table[6]; }
    FN_MEMBER int repeat() const { return table[7]; }
    FN_MEMBER int outer() const { return table[8]; }
    FN_MEMBER int inner() const { return table[9]; }
    FN_MEMBER bool final() const { return table[10]; }
    FN_MEMBER int component_step() const { return table[11]; }
    FN_MEMBER int ket_step() const { return table[12]; }
    FN_MEMBER int outputs() const { return table[13]; }
    FN_MEMBER int values() const { return table[14]; }
    FN_MEMBER int momenta() const { return table[15]; }  // not 0: plain loops over these momenta instead of statements
    FN_MEMBER const int* level_starts() const { return table + 16; }
};
