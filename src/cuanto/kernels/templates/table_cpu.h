// Any class of integrals from index tables (see schedule/table.py): NV vectors of LANES kets per slot.
// Included after the prelude and boys.h; PARAMETERS is the argument list of abi.py.

enum { OP_SUM, OP_UNIFORM, OP_RCP, OP_SQRT, OP_EXP, OP_BOYS, OP_OUT, HEADER = 5 };

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

template <int NV> struct Store {
    const INDEX* rows;
    const int* cols;
    REAL* out;
    INDEX row_stride, component_stride;
    int count;
    void operator()(const int* pc, const VEC* value) const {
        const INDEX row = rows[pc[3]];
        if (row < 0) return;
        REAL* target = out + pc[1] * component_stride + row * row_stride + pc[4];
        for (int i = 0; i < NV; ++i)
            for (int lane = 0; lane < LANES && i * LANES + lane < count; ++lane)
                target[cols[i * LANES + lane]] = value[i][lane];
    }
};

template <int NV> static inline void sum_of_products(const int* pc, const REAL* u, VEC* v) {
    const int* pair = pc + HEADER;
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
    VEC F[40];
    for (int i = 0; i < NV; ++i) {
        boys_any(pc[3], v[(INDEX)pc[2] * NV + i], boys_table, F);
        for (int m = 0; m <= pc[3]; ++m) v[((INDEX)pc[1] + m) * NV + i] = F[m];
    }
}

template <int NV, class Result>
static void execute(const int* code, int size, REAL* u, VEC* v, const REAL* boys_table, const Result& result) {
    for (const int *pc = code, *end = code + size; pc < end; pc += HEADER) {
        const VEC* source = v + (INDEX)pc[2] * NV;
        VEC* target = v + (INDEX)pc[1] * NV;
        switch (pc[0]) {
        case OP_SUM:
            sum_of_products<NV>(pc, u, v);
            pc += 2 * (pc[2] + pc[3] + pc[4]);
            break;
        case OP_UNIFORM: {
            REAL s = 0;
            const int* pair = pc + HEADER;
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

template <int NV> static void table_batch(PARAMETERS) {
    const INDEX block = NV * LANES;
    const INDEX acc_size = (INDEX)columns * width * NV;
    const INDEX behind = (contracted_slots > width ? contracted_slots - width : 0) * (INDEX)NV;
    const INDEX primitive = (INDEX)primitive_slots * NV;
    // The contracted stage of column q overwrites the sums of columns behind it, which have left by then.
    VEC* memory = lane_memory(acc_size + (behind > primitive ? behind : primitive));
    REAL* u = uniform_memory(primitive_uniforms + contracted_uniforms);
    VEC *acc = memory, *v = memory + acc_size;
    REAL* w = u + primitive_uniforms;
    for (int i = 0; i < primitive_constant_count; ++i)
        u[primitive_uniforms - primitive_constant_count + i] = primitive_constants[i];
    for (int i = 0; i < contracted_constant_count; ++i)
        w[contracted_uniforms - contracted_constant_count + i] = contracted_constants[i];
    for (INDEX b = bra_begin; b < bra_end; ++b) {
        for (int i = 0; i < SHELL_FIELDS; ++i) w[i] = shell_record[b * SHELL_FIELDS + i];
        for (INDEX first = 0; first < kets; first += block) {
            for (INDEX i = 0; i < acc_size; ++i) acc[i] = vset(0);
            for (INDEX k = bra_first[b]; k < bra_first[b + 1]; ++k) {
                for (int i = 0; i < bra_fields; ++i) u[i] = bra_record[k * bra_fields + i];
                const Accumulate<NV> sums{acc, bra_coefficient + k * columns, columns, width};
                for (INDEX c = 0; c < ket_primitives; ++c) {
                    const REAL* source = ket_record + c * KET_FIELDS * ket_stride + first;
                    for (int f = 0; f < KET_FIELDS; ++f)
                        for (int i = 0; i < NV; ++i) v[f * NV + i] = vload(source + f * ket_stride + i * LANES);
                    execute<NV>(primitive_code, primitive_size, u, v, boys_table, sums);
                }
            }
            const int count = (int)(kets - first < block ? kets - first : block);
            for (int q = columns - 1; q >= 0; --q) {
                const INDEX* target = rows + (b * columns + q) * bra_functions;
                const Store<NV> store{target, cols + first, out, row_stride, component_stride, count};
                execute<NV>(contracted_code, contracted_size, w, acc + (INDEX)q * width * NV, boys_table, store);
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
