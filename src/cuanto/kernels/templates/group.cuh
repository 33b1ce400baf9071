// Integrals of any class on the GPU, from index tables that are sorted into levels. A block of threads computes one bra with
// `lanes` kets: its threads divide the records of a level among them and synchronise before the next. Values are in shared
// memory, or in `scratch` when they do not fit. Passes of a sweep are independent: as many as fit into `slots` run together.

enum { RECORD_INT4 = 3, COEFFICIENT = 4 };  // integers of a record; place of the coefficient among a ket's fields

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

// Keeps the results of the ket sweep as the input of the bra sweep.
struct GroupMiddle {
    REAL* middle;
    int outputs;
    FN void operator()(int4 head, int, REAL value, int pass, const Workers& w) const {
        middle[(pass * outputs + head.y) * w.lanes + w.lane] = value;
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
    else if (head.x == OP_RSQRT) *target = vrsqrt(x);
    else if (head.x == OP_EXP) *target = vexp(x);
    else {
        REAL F[BOYS_MAX_ORDER + 1];
        boys_any(head.w, x, boys_table, F);
        for (int m = 0; m <= head.w; ++m) target[m * w.lanes] = F[m];
    }
}

// `passes` passes at once, the first of them number `first`; pass i has its values at v + i * slots. Sweeps are sums without
// FUNCTIONS: leaving those out there shortens the compilation, for which every first calculation waits, from 0.51 to 0.33 s.
template <bool FUNCTIONS, class Result>
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
            } else if (FUNCTIONS) group_function(head, mine, boys_table, w);
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
        group_execute<false>(sweep, first, passes, u, v, boys_table, result, w);
    }
}

// Programs and storage of a block.
struct GroupWork {
    Sides x;
    Program primitive, ket_sweep, bra_sweep;
    int width, bra_fields, ket_fields, slots;
    REAL *u, *ket_u, *bra_u, *acc, *middle, *v;

    // Bra b with the kets of the block (`ket` in this thread) of at most `primitives` primitives; make_store(column)
    // takes the integrals of a column.
    template <class MakeStore>
    FN void quartet(INDEX b, INDEX ket, INDEX primitives, const MakeStore& make_store, const Workers& w) const {
        const INDEX block = ket / BLOCK, lane = ket % BLOCK;
        const INDEX first = x.ket_first[block], last = x.ket_first[block + 1] - 1;
        const int columns = x.columns, middle_values = ket_sweep.repeat() * ket_sweep.outputs();
        const REAL* distance = x.ket_shell + block * SHELL_FIELDS * BLOCK + lane;
        for (int i = threadIdx.x; i < columns * width * w.lanes; i += blockDim.x) acc[i] = 0;
        if (threadIdx.x < SHELL_FIELDS) bra_u[threadIdx.x] = x.bra_shell[b * SHELL_FIELDS + threadIdx.x];
        for (INDEX k = x.bra_first[b]; k < x.bra_first[b + 1]; ++k) {
            if (threadIdx.x < bra_fields) u[threadIdx.x] = x.bra_record[k * bra_fields + threadIdx.x];
            const GroupAccumulate sums = {acc, x.bra_coefficient + k * columns, columns, width};
            for (INDEX c = 0; c < primitives; ++c) {
                const INDEX mine = first + c < last ? first + c : last;
                for (int f = w.worker; f < ket_fields; f += w.count) {
                    const REAL value = x.ket_record[(mine * ket_fields + f) * BLOCK + lane];
                    v[f * w.lanes + w.lane] = f == COEFFICIENT && first + c > last ? REAL(0) : value;
                }
                __syncthreads();
                group_execute<true>(primitive, 0, 1, u, v, x.boys_table, sums, w);
            }
        }
        for (int q = 0; q < columns; ++q) {
            REAL* mine = acc + (INDEX)q * width * w.lanes;
            const GroupMiddle keep = {middle, ket_sweep.outputs()};
            group_sweep(ket_sweep, mine, distance, ket_u, v, slots, x.boys_table, keep, w);
            group_sweep(bra_sweep, middle_values ? middle : mine, distance, bra_u, v, slots, x.boys_table, make_store(q), w);
        }
        __syncthreads();
    }
};

// Storage from `memory` on, in the order u, sums, slots; loads the constants of the programs.
FN GroupWork group_work(const Sides& x, const Tables& t, int slots, REAL* memory, const Workers& w) {
    const Program primitive = {t.primitive_table, t.primitive_constants};
    const Program ket_sweep = {t.ket_table, t.ket_constants};
    const Program bra_sweep = {t.bra_table, t.bra_constants};
    REAL* ket_u = memory + primitive.uniforms();
    REAL* bra_u = ket_u + ket_sweep.uniforms();
    REAL* acc = bra_u + bra_sweep.uniforms();
    REAL* middle = acc + x.columns * t.width * w.lanes;
    REAL* v = middle + (INDEX)ket_sweep.repeat() * ket_sweep.outputs() * w.lanes;
    group_uniforms(primitive, memory);
    group_uniforms(ket_sweep, ket_u);
    group_uniforms(bra_sweep, bra_u);
    return GroupWork{x, primitive, ket_sweep, bra_sweep, (int)t.width, (int)t.bra_fields, (int)t.ket_fields, slots,
                     memory, ket_u, bra_u, acc, middle, v};
}
