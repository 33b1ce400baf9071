// Any class of integrals from index tables (depth first): NV vectors of LANES kets per slot.

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

// Keeps the results of the ket sweep as the input of the bra sweep.
template <int NV> struct Middle {
    VEC* middle;  // of this pass
    void operator()(const int* pc, const VEC* value) const {
        VEC* target = middle + (INDEX)pc[1] * NV;
        for (int i = 0; i < NV; ++i) target[i] = value[i];
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
        case OP_RSQRT: for (int i = 0; i < NV; ++i) target[i] = vrsqrt(source[i]); break;
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

// The three stages of a class with their storage.
template <int NV> struct TableWork {
    const Sides& x;
    const Tables& tables;
    Program primitive, sweeps[2];
    Momenta momenta;
    INDEX acc_size, middle_size;
    VEC *acc, *middle, *v, *loops;
    REAL *u, *sweep_u[2];

    TableWork(const Sides& sides, const Tables& t)
        : x(sides), tables(t), primitive{t.primitive_table, t.primitive_constants},
          sweeps{{t.ket_table, t.ket_constants}, {t.bra_table, t.bra_constants}} {
        acc_size = x.columns * t.width * NV;
        INDEX slots = primitive.slots();
        for (const Program& sweep : sweeps) slots = sweep.slots() > slots ? sweep.slots() : slots;
        middle_size = (INDEX)sweeps[0].repeat() * sweeps[0].outputs() * NV;
        const int code = primitive.momenta() - 1;
        momenta = Momenta{code & 15, code >> 4 & 15, code >> 8 & 15, code >> 12 & 15};
        const INDEX loop_size = code < 0 ? 0 : loop_storage(momenta) + t.width;
        acc = lane_memory(acc_size + middle_size + slots * NV + loop_size);
        middle = acc + acc_size;
        v = middle + middle_size;
        loops = v + slots * NV;
        u = uniform_memory(primitive.uniforms() + sweeps[0].uniforms() + sweeps[1].uniforms());
        sweep_u[0] = u + primitive.uniforms();
        sweep_u[1] = sweep_u[0] + sweeps[0].uniforms();
        uniform_values(primitive, u);
        for (int s = 0; s < 2; ++s) uniform_values(sweeps[s], sweep_u[s]);
    }

    // Bra b with the kets that begin at `ket`, summed over primitives.
    void sums(INDEX b, INDEX ket) {
        const INDEX block = ket / BLOCK, lane = ket % BLOCK;
        for (INDEX i = 0; i < acc_size; ++i) acc[i] = vset(0);
        for (INDEX k = x.bra_first[b]; k < x.bra_first[b + 1]; ++k) {
            for (INDEX i = 0; i < tables.bra_fields; ++i) u[i] = x.bra_record[k * tables.bra_fields + i];
            const Accumulate<NV> sums{acc, x.bra_coefficient + k * x.columns, (int)x.columns, (int)tables.width};
            for (INDEX c = x.ket_first[block]; c < x.ket_first[block + 1]; ++c) {
                const REAL* source = x.ket_record + c * tables.ket_fields * BLOCK + lane;
#if SCREENED
                if (!vany(u[SIZE] * vload(source + SIZE * BLOCK) >= REAL(x.cutoff))) break;  // NV is 1 with a list
#endif
                for (INDEX f = 0; f < tables.ket_fields; ++f)
                    for (int i = 0; i < NV; ++i) v[f * NV + i] = vload(source + f * BLOCK + i * LANES);
                if (primitive.momenta()) add_loops(sums);
                else execute<NV>(primitive, u, v, x.boys_table, sums);
            }
        }
    }

    // A primitive quartet by loops, one vector after the other.
    void add_loops(const Accumulate<NV>& sums) {
        VEC* value = loops + loop_storage(momenta);
        for (int i = 0; i < NV; ++i) {
            md_primitive(momenta, u, v + i, NV, x.boys_table, loops, value);
            for (int q = 0; q < sums.columns; ++q)
                for (INDEX j = 0; j < sums.width; ++j) {
                    VEC& target = acc[(q * (INDEX)sums.width + j) * NV + i];
                    target = vfma(sums.coefficient[q], value[j], target);
                }
        }
    }

    // The sweeps of column q; make_store(pass) takes the results of a pass of the last one.
    template <class MakeStore> void finish(INDEX b, INDEX ket, INDEX q, const MakeStore& make_store) {
        const REAL* distance = x.ket_shell + ket / BLOCK * SHELL_FIELDS * BLOCK + ket % BLOCK;
        for (int s = 0; s < 2; ++s) {
            const Program& sweep = sweeps[s];
            for (int i = 0; i < SHELL_FIELDS; ++i) sweep_u[s][i] = x.bra_shell[b * SHELL_FIELDS + i];
            for (INDEX pass = 0; pass < sweep.repeat(); ++pass) {
                const VEC* start = (s == 1 && middle_size ? middle : acc + q * tables.width * NV) + pass * sweep.outer() * NV;
                for (INDEX j = 0; j < sweep.values(); ++j)
                    for (int i = 0; i < NV; ++i) v[j * NV + i] = start[j * sweep.inner() * NV + i];
                for (INDEX j = sweep.values(); j < sweep.lane_inputs(); ++j)
                    for (int i = 0; i < NV; ++i)
                        v[j * NV + i] = vload(distance + (j - sweep.values()) * BLOCK + i * LANES);
                if (sweep.final()) execute<NV>(sweep, sweep_u[s], v, x.boys_table, make_store(pass));
                else execute<NV>(sweep, sweep_u[s], v, x.boys_table, Middle<NV>{middle + pass * sweep.outputs() * NV});
            }
        }
    }
};
