// Records of both sides, as kernels.abi describes them.
struct Sides {
    const int* bra_first;
    const REAL* bra_record;
    const REAL* bra_coefficient;
    INDEX columns;
    const REAL* bra_shell;
    const int* ket_first;
    const REAL* ket_record;
    const REAL* ket_shell;
    const REAL* boys_table;
    double cutoff;  // with SCREENED: primitive quartets of a smaller size are left out
};

// Index tables of a class.
struct Tables {
    INDEX bra_fields, ket_fields, width, bra_functions;
    const int* primitive_table;
    const REAL* primitive_constants;
    const int* ket_table;
    const REAL* ket_constants;
    const int* bra_table;
    const REAL* bra_constants;
};
