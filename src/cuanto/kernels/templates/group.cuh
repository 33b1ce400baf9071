// Any class of integrals from index tables (by levels) on the GPU: a block shares `lanes` kets of one bra; its threads
// share the records of a level, a barrier follows each level. Values live in shared memory, or in `scratch` when they
// do not fit. Passes of a sweep are independent: as many as `slots` has room for are treated at once.

enum { RECORD_INT4 = 3 };

struct Workers { int lanes, lane, worker, count; };

struct GroupAccumulate {
    REAL* acc;
    const REAL* coefficient;
    int columns, width;
    FN void operator()(int4 head, int, REAL value, int, const Workers& w) const {
        for (int q = 0; q < columns; ++q) {
            REAL* target = acc + (q * width + head.y) * w.lanes + w.lane;
            *target = vfma(coefficient[q], value, *target);
        }
    }
};

struct GroupLeave {
    REAL* middle;
    int outputs;
    FN void operator()(int4 head, int, REAL value, int pass, const Workers& w) const {
        middle[(pass * outputs + head.y) * w.lanes + w.lane] = value;
    }
};

struct GroupStore {
    const INDEX* rows;
    const int* cols;
    INDEX kets;
    REAL* out;
    INDEX row_stride, pass_stride;
    int ket_step;
    bool wanted;
    FN void operator()(int4 head, int ket, REAL value, int pass, const Workers&) const {
        if (wanted) out[pass * pass_stride + rows[head.w] * row_stride + cols[(ket + pass * ket_step) * kets]] = value;
    }
};

FN REAL group_factor(int index, const REAL* u, const REAL* v, const Workers& w) {
    return index < 0 ? u[-1 - index] : v[index * w.lanes + w.lane];
}

FN REAL group_term(int x, int y, REAL s, const REAL* u, const REAL* v, const Workers& w) {
    return vfma(group_factor(x, u, v, w), group_factor(y, u, v, w), s);
}

FN REAL group_sum(int count, const int4* factors, const REAL* u, const REAL* v, const Workers& w) {
    const int4 first = factors[0], second = factors[1];
    REAL s = group_term(first.x, first.y, REAL(0), u, v, w);
    if (count > 1) s = group_term(first.z, first.w, s, u, v, w);
    if (count > 2) s = group_term(second.x, second.y, s, u, v, w);
    if (count > 3) s = group_term(second.z, second.w, s, u, v, w);
    return s;
}

FN void group_function(int4 head, REAL* v, const REAL* boys_table, const Workers& w) {
    REAL* target = v + head.y * w.lanes + w.lane;
    const REAL x = v[head.z * w.lanes + w.lane];
    if (head.x == OP_RCP) *target = vrcp(x);
    else if (head.x == OP_SQRT) *target = vsqrt(x);
    else if (head.x == OP_EXP) *target = vexp(x);
    else {
        REAL F[BOYS_MAX_ORDER + 1];
        boys_any(head.w, x, boys_table, F);
        for (int m = 0; m <= head.w; ++m) target[m * w.lanes] = F[m];
    }
}

// `passes` passes at once, the first of them number `first`; pass i has its values at v + i * slots.
template <class Result>
FN void group_execute(const Program& program, int first, int passes, REAL* u, REAL* v, const REAL* boys_table,
                      const Result& result, const Workers& w) {
    const int* levels = program.level_starts();
    const int4* code = (const int4*)program.code();
    const int stride = program.slots() * w.lanes;
    for (int level = 0; level < program.level_count(); ++level) {
        const int begin = levels[level], count = levels[level + 1] - begin;
        for (int item = w.worker; item < count * passes; item += w.count) {
            const int pass = item / count;
            const int4* record = code + RECORD_INT4 * (begin + item - pass * count);
            const int4 head = record[0];
            REAL* mine = v + pass * stride;
            if (head.x == OP_SUM) mine[head.y * w.lanes + w.lane] = group_sum(head.z, record + 1, u, mine, w);
            else if (head.x == OP_OUT) result(head, record[1].x, mine[head.z * w.lanes + w.lane], first + pass, w);
            else if (head.x == OP_UNIFORM) {
                if (w.lane == 0) u[head.y] = group_sum(head.z, record + 1, u, mine, w);
            } else group_function(head, mine, boys_table, w);
        }
        __syncthreads();
    }
}

FN void group_uniforms(const Program& program, REAL* u) {
    for (int i = program.uniform_inputs() + threadIdx.x; i < program.uniforms(); i += blockDim.x)
        u[i] = program.constants[i - program.uniform_inputs()];
}

template <class Result>
FN void group_sweep(const Program& sweep, const REAL* acc, const REAL* distance, REAL* u, REAL* v, int slots,
                    const REAL* boys_table, const Result& result, const Workers& w) {
    const int inputs = sweep.lane_inputs(), values = sweep.values(), repeat = sweep.repeat();
    const int at_once = slots / sweep.slots();
    for (int first = 0; first < repeat; first += at_once) {
        const int passes = repeat - first < at_once ? repeat - first : at_once;
        for (int item = w.worker; item < inputs * passes; item += w.count) {
            const int pass = item / inputs, j = item - pass * inputs;
            v[(pass * sweep.slots() + j) * w.lanes + w.lane] =
                j < values ? acc[((first + pass) * sweep.outer() + j * sweep.inner()) * w.lanes + w.lane]
                           : distance[(j - values) * BLOCK];
        }
        __syncthreads();
        group_execute(sweep, first, passes, u, v, boys_table, result, w);
    }
}

extern "C" __global__ void __launch_bounds__(256)
ENTRY(PARAMETERS, int lanes, int slots, REAL* scratch, INDEX scratch_stride) {
    extern __shared__ REAL shared_memory[];
    const Program primitive = {primitive_table, primitive_constants};
    const Program ket_sweep = {ket_table, ket_constants};
    const Program bra_sweep = {bra_table, bra_constants};
    const Workers w = {lanes, (int)threadIdx.x % lanes, (int)threadIdx.x / lanes, (int)blockDim.x / lanes};
    REAL* u = scratch_stride ? scratch + blockIdx.x * scratch_stride : shared_memory;
    REAL* ket_u = u + primitive.uniforms();
    REAL* bra_u = ket_u + ket_sweep.uniforms();
    REAL* acc = bra_u + bra_sweep.uniforms();
    const int left = ket_sweep.repeat() * ket_sweep.outputs();
    REAL* middle = acc + (INDEX)columns * width * lanes;
    REAL* v = middle + (INDEX)left * lanes;
    group_uniforms(primitive, u);
    group_uniforms(ket_sweep, ket_u);
    group_uniforms(bra_sweep, bra_u);
    const INDEX blocks = (kets + lanes - 1) / lanes;
    for (INDEX item = blockIdx.x; item < blocks * (bra_end - bra_begin); item += gridDim.x) {
        const INDEX b = bra_begin + item / blocks;
        const INDEX ket = item % blocks * lanes + w.lane;
        const INDEX block = ket / BLOCK, lane = ket % BLOCK;
        const REAL* distance = ket_shell + block * SHELL_FIELDS * BLOCK + lane;
        for (int i = threadIdx.x; i < columns * width * lanes; i += blockDim.x) acc[i] = 0;
        if (threadIdx.x < SHELL_FIELDS) bra_u[threadIdx.x] = bra_shell[b * SHELL_FIELDS + threadIdx.x];
        for (INDEX k = bra_first[b]; k < bra_first[b + 1]; ++k) {
            if (threadIdx.x < bra_fields) u[threadIdx.x] = bra_record[k * bra_fields + threadIdx.x];
            const GroupAccumulate sums = {acc, bra_coefficient + k * columns, columns, width};
            for (INDEX c = ket_first[block]; c < ket_first[block + 1]; ++c) {
                for (int f = w.worker; f < ket_fields; f += w.count)
                    v[f * lanes + w.lane] = ket_record[(c * ket_fields + f) * BLOCK + lane];
                __syncthreads();
                group_execute(primitive, 0, 1, u, v, boys_table, sums, w);
            }
        }
        for (int q = 0; q < columns; ++q) {
            REAL* mine = acc + (INDEX)q * width * lanes;
            const GroupLeave leave = {middle, ket_sweep.outputs()};
            group_sweep(ket_sweep, mine, distance, ket_u, v, slots, boys_table, leave, w);
            const GroupStore store = {rows + (b * columns + q) * bra_functions, cols + ket, kets, out, row_stride,
                                      bra_sweep.component_step() * component_stride, bra_sweep.ket_step(), ket < kets};
            group_sweep(bra_sweep, left ? middle : mine, distance, bra_u, v, slots, boys_table, store, w);
        }
        __syncthreads();
    }
}
