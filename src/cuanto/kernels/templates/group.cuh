// Any class of integrals from index tables on the GPU: a block shares `lanes` kets of one bra; its threads share the
// statements of a level, a barrier follows each level. Values live in shared memory.

enum { OP_SUM, OP_UNIFORM, OP_RCP, OP_SQRT, OP_EXP, OP_BOYS, OP_OUT, HEADER = 5 };

struct Workers { int lanes, lane, worker, count; };

struct GroupAccumulate {
    REAL* acc;
    const REAL* coefficient;
    int columns, width;
    FN void operator()(const int* pc, const REAL* v, const Workers& w) const {
        const REAL value = v[pc[2] * w.lanes + w.lane];
        for (int q = 0; q < columns; ++q) {
            REAL* target = acc + (q * width + pc[1]) * w.lanes + w.lane;
            *target = vfma(coefficient[q], value, *target);
        }
    }
};

struct GroupStore {
    const INDEX* rows;
    REAL* out;
    INDEX row_stride, component_stride;
    bool wanted;
    FN void operator()(const int* pc, const REAL* v, const Workers& w) const {
        const INDEX row = rows[pc[3]];
        if (wanted && row >= 0)
            out[pc[1] * component_stride + row * row_stride + pc[4]] = v[pc[2] * w.lanes + w.lane];
    }
};

FN REAL group_sum(const int* pc, const REAL* u, const REAL* v, const Workers& w) {
    const int* pair = pc + HEADER;
    REAL s = 0;
    for (int n = pc[2]; n > 0; --n, pair += 2) s = vfma(u[pair[0]], u[pair[1]], s);
    for (int n = pc[3]; n > 0; --n, pair += 2) s = vfma(u[pair[0]], v[pair[1] * w.lanes + w.lane], s);
    for (int n = pc[4]; n > 0; --n, pair += 2)
        s = vfma(v[pair[0] * w.lanes + w.lane], v[pair[1] * w.lanes + w.lane], s);
    return s;
}

template <class Result>
FN void group_statement(const int* pc, REAL* u, REAL* v, const REAL* boys_table, const Result& result,
                        const Workers& w) {
    REAL* target = v + pc[1] * w.lanes + w.lane;
    if (pc[0] == OP_SUM) {
        *target = group_sum(pc, u, v, w);
    } else if (pc[0] == OP_OUT) {
        result(pc, v, w);
    } else if (pc[0] == OP_UNIFORM) {
        if (w.lane == 0) u[pc[1]] = group_sum(pc, u, v, w);
    } else {
        const REAL x = v[pc[2] * w.lanes + w.lane];
        if (pc[0] == OP_RCP) *target = vrcp(x);
        else if (pc[0] == OP_SQRT) *target = vsqrt(x);
        else if (pc[0] == OP_EXP) *target = vexp(x);
        else {
            REAL F[40];
            boys_any(pc[3], x, boys_table, F);
            for (int m = 0; m <= pc[3]; ++m) target[m * w.lanes] = F[m];
        }
    }
}

template <class Result>
FN void group_execute(const int* code, const int* starts, const int* levels, int level_count, REAL* u, REAL* v,
                      const REAL* boys_table, const Result& result, const Workers& w) {
    for (int level = 0; level < level_count; ++level) {
        for (int s = levels[level] + w.worker; s < levels[level + 1]; s += w.count)
            group_statement(code + starts[s], u, v, boys_table, result, w);
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(256) ENTRY(PARAMETERS, int lanes, REAL* scratch, INDEX scratch_stride) {
    extern __shared__ REAL shared_memory[];
    REAL* memory = scratch_stride ? scratch + blockIdx.x * scratch_stride : shared_memory;
    const Workers w = {lanes, (int)threadIdx.x % lanes, (int)threadIdx.x / lanes, (int)blockDim.x / lanes};
    REAL* u = memory;
    REAL* u2 = u + primitive_uniforms;
    REAL* acc = u2 + contracted_uniforms;
    // Primitive values, later the temporaries of the contracted stage, which starts from the last column.
    REAL* v = acc + (INDEX)columns * width * lanes;
    for (int i = threadIdx.x; i < primitive_constant_count; i += blockDim.x)
        u[primitive_uniforms - primitive_constant_count + i] = primitive_constants[i];
    for (int i = threadIdx.x; i < contracted_constant_count; i += blockDim.x)
        u2[contracted_uniforms - contracted_constant_count + i] = contracted_constants[i];
    const INDEX blocks = (kets + lanes - 1) / lanes;
    for (INDEX item = blockIdx.x; item < blocks * (bra_end - bra_begin); item += gridDim.x) {
        const INDEX b = bra_begin + item / blocks;
        const INDEX ket = item % blocks * lanes + w.lane;
        for (int i = threadIdx.x; i < columns * width * lanes; i += blockDim.x) acc[i] = 0;
        if (threadIdx.x < SHELL_FIELDS) u2[threadIdx.x] = shell_record[b * SHELL_FIELDS + threadIdx.x];
        for (INDEX k = bra_first[b]; k < bra_first[b + 1]; ++k) {
            if (threadIdx.x < bra_fields) u[threadIdx.x] = bra_record[k * bra_fields + threadIdx.x];
            const GroupAccumulate sums = {acc, bra_coefficient + k * columns, columns, width};
            for (INDEX c = 0; c < ket_primitives; ++c) {
                for (int f = w.worker; f < KET_FIELDS; f += w.count)
                    v[f * lanes + w.lane] = ket_record[(c * KET_FIELDS + f) * ket_stride + ket];
                __syncthreads();
                group_execute(primitive_code, primitive_starts, primitive_levels, primitive_level_count, u, v,
                              boys_table, sums, w);
            }
        }
        for (int q = columns - 1; q >= 0; --q) {
            const INDEX* target = rows + (b * columns + q) * bra_functions;
            const GroupStore store = {target, out + (ket < kets ? cols[ket] : 0), row_stride, component_stride, ket < kets};
            group_execute(contracted_code, contracted_starts, contracted_levels, contracted_level_count, u2,
                          acc + (INDEX)q * width * lanes, boys_table, store, w);
        }
        __syncthreads();
    }
}
