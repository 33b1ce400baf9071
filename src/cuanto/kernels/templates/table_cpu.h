// Any class of integrals from index tables (depth first): NV vectors of LANES kets per slot.
// Included after the prelude, boys.h and program.h; PARAMETERS is the argument list of abi.py.

enum { STATEMENT = 5 };

template <int NV> struct Accumulate {
    VEC* acc;
    const REAL* coefficient;
    int columns, width;
    void operator()(const int* pc, const VEC* value) const {
        for (int q = 0; q < columns; ++q) {
            VEC* target = acc + ((INDEX)q * width + pc[1]) * NV;
            for (int i = 0; i < NV; ++i) target[i] = vfma(coefficient[q], value[i], target[i]);
        }
    }
};

template <int NV> struct Leave {
    VEC* middle;  // of this pass
    void operator()(const int* pc, const VEC* value) const {
        VEC* target = middle + (INDEX)pc[1] * NV;
        for (int i = 0; i < NV; ++i) target[i] = value[i];
    }
};

template <int NV> struct Store {
    const INDEX* rows;
    const int* cols;  // of this pass
    INDEX kets;
    REAL* out;  // of this pass
    INDEX row_stride;
    int count;
    void operator()(const int* pc, const VEC* value) const {
        REAL* target = out + rows[pc[3]] * row_stride;
        const int* col = cols + pc[4] * kets;
        for (int i = 0; i < NV; ++i)
            for (int lane = 0; lane < LANES && i * LANES + lane < count; ++lane)
                target[col[i * LANES + lane]] = value[i][lane];
    }
};

template <int NV> static inline void sum_of_products(const int* pc, const REAL* u, VEC* v) {
    const int* pair = pc + STATEMENT;
    REAL start = 0;
    for (int n = pc[2]; n > 0; --n, pair += 2) start += u[pair[0]] * u[pair[1]];
    VEC s[NV];
    for (int i = 0; i < NV; ++i) s[i] = vset(start);
    for (int n = pc[3]; n > 0; --n, pair += 2) {
        const REAL x = u[pair[0]];
        const VEC* y = v + (INDEX)pair[1] * NV;
        for (int i = 0; i < NV; ++i) s[i] = vfma(x, y[i], s[i]);
    }
    for (int n = pc[4]; n > 0; --n, pair += 2) {
        const VEC* x = v + (INDEX)pair[0] * NV;
        const VEC* y = v + (INDEX)pair[1] * NV;
        for (int i = 0; i < NV; ++i) s[i] = vfma(x[i], y[i], s[i]);
    }
    VEC* target = v + (INDEX)pc[1] * NV;
    for (int i = 0; i < NV; ++i) target[i] = s[i];
}

template <int NV> static void evaluate_boys(const int* pc, VEC* v, const REAL* boys_table) {
    VEC F[BOYS_MAX_ORDER + 1];
    for (int i = 0; i < NV; ++i) {
        boys_any(pc[3], v[(INDEX)pc[2] * NV + i], boys_table, F);
        for (int m = 0; m <= pc[3]; ++m) v[((INDEX)pc[1] + m) * NV + i] = F[m];
    }
}

template <int NV, class Result>
static void execute(const Program& program, REAL* u, VEC* v, const REAL* boys_table, const Result& result) {
    const int* end = program.code() + program.size();
    for (const int* pc = program.code(); pc < end; pc += STATEMENT) {
        const VEC* source = v + (INDEX)pc[2] * NV;
        VEC* target = v + (INDEX)pc[1] * NV;
        switch (pc[0]) {
        case OP_SUM:
            sum_of_products<NV>(pc, u, v);
            pc += 2 * (pc[2] + pc[3] + pc[4]);
            break;
        case OP_UNIFORM: {
            REAL s = 0;
            const int* pair = pc + STATEMENT;
            for (int n = pc[2]; n > 0; --n, pair += 2) s += u[pair[0]] * u[pair[1]];
            u[pc[1]] = s;
            pc += 2 * pc[2];
            break;
        }
        case OP_RCP: for (int i = 0; i < NV; ++i) target[i] = vrcp(source[i]); break;
        case OP_SQRT: for (int i = 0; i < NV; ++i) target[i] = vsqrt(source[i]); break;
        case OP_EXP: for (int i = 0; i < NV; ++i) target[i] = vexp(source[i]); break;
        case OP_BOYS: evaluate_boys<NV>(pc, v, boys_table); break;
        default: result(pc, source);
        }
    }
}

static REAL* uniform_values(const Program& program, REAL* u) {
    for (int i = program.uniform_inputs(); i < program.uniforms(); ++i) u[i] = program.constants[i - program.uniform_inputs()];
    return u;
}

template <int NV> static void table_batch(PARAMETERS) {
    const Program primitive{primitive_table, primitive_constants};
    const Program sweeps[2] = {{ket_table, ket_constants}, {bra_table, bra_constants}};
    const INDEX step = NV * LANES;
    const INDEX acc_size = (INDEX)columns * width * NV;
    INDEX slots = primitive.slots();
    for (const Program& sweep : sweeps) slots = sweep.slots() > slots ? sweep.slots() : slots;
    const INDEX middle_size = (INDEX)sweeps[0].repeat() * sweeps[0].outputs() * NV;
    VEC* acc = lane_memory(acc_size + middle_size + slots * NV);
    VEC* middle = acc + acc_size;
    VEC* v = middle + middle_size;
    REAL* u = uniform_memory(primitive.uniforms() + sweeps[0].uniforms() + sweeps[1].uniforms());
    REAL* sweep_u[2] = {u + primitive.uniforms(), u + primitive.uniforms() + sweeps[0].uniforms()};
    uniform_values(primitive, u);
    for (int s = 0; s < 2; ++s) uniform_values(sweeps[s], sweep_u[s]);
    for (INDEX b = bra_begin; b < bra_end; ++b) {
        for (int s = 0; s < 2; ++s)
            for (int i = 0; i < SHELL_FIELDS; ++i) sweep_u[s][i] = bra_shell[b * SHELL_FIELDS + i];
        for (INDEX first = 0; first < kets; first += step) {
            const INDEX block = first / BLOCK, lane = first % BLOCK;
            const REAL* distance = ket_shell + block * SHELL_FIELDS * BLOCK + lane;
            for (INDEX i = 0; i < acc_size; ++i) acc[i] = vset(0);
            for (INDEX k = bra_first[b]; k < bra_first[b + 1]; ++k) {
                for (int i = 0; i < bra_fields; ++i) u[i] = bra_record[k * bra_fields + i];
                const Accumulate<NV> sums{acc, bra_coefficient + k * columns, columns, width};
                for (INDEX c = ket_first[block]; c < ket_first[block + 1]; ++c) {
                    const REAL* source = ket_record + c * ket_fields * BLOCK + lane;
                    for (int f = 0; f < ket_fields; ++f)
                        for (int i = 0; i < NV; ++i) v[f * NV + i] = vload(source + f * BLOCK + i * LANES);
                    execute<NV>(primitive, u, v, boys_table, sums);
                }
            }
            const int count = (int)(kets - first < step ? kets - first : step);
            for (int q = 0; q < columns; ++q)
                for (int s = 0; s < 2; ++s)
                    for (INDEX pass = 0; pass < sweeps[s].repeat(); ++pass) {
                        const Program& sweep = sweeps[s];
                        const VEC* start = (s == 1 && middle_size ? middle : acc + (INDEX)q * width * NV) + pass * sweep.outer() * NV;
                        for (INDEX j = 0; j < sweep.values(); ++j)
                            for (int i = 0; i < NV; ++i) v[j * NV + i] = start[j * sweep.inner() * NV + i];
                        for (INDEX j = sweep.values(); j < sweep.lane_inputs(); ++j)
                            for (int i = 0; i < NV; ++i)
                                v[j * NV + i] = vload(distance + (j - sweep.values()) * BLOCK + i * LANES);
                        if (!sweep.final()) {
                            execute<NV>(sweep, sweep_u[s], v, boys_table, Leave<NV>{middle + pass * sweep.outputs() * NV});
                        } else {
                            const INDEX* target = rows + (b * columns + q) * bra_functions;
                            REAL* place = out + pass * sweep.component_step() * component_stride;
                            const int* columns_of_pass = cols + pass * sweep.ket_step() * kets + first;
                            execute<NV>(sweep, sweep_u[s], v, boys_table,
                                        Store<NV>{target, columns_of_pass, kets, place, row_stride, count});
                        }
                    }
        }
    }
}

extern "C" void table_kernel(PARAMETERS, int vectors) {
    switch (vectors) {
    case 1: table_batch<1>(ARGUMENTS); break;
    case 2: table_batch<2>(ARGUMENTS); break;
    default: table_batch<4>(ARGUMENTS);
    }
}
