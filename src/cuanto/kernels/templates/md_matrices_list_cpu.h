// A list of (bra, first of LANES kets) by products of matrices: results [item][column][bra function][ket function][lane].

// R_tuv of a primitive quartet in its cube, from the highest order m down: each order replaces the one above it, along z
// (v > 0), else along y, else along x.
static void hermite_cube(const Matrices& m, const REAL* bra, const REAL* ket, const REAL* boys_table, VEC* R) {
    const INDEX L = m.order, side = L + 1;
    VEC X[3], F[BOYS_MAX_ORDER + 1];
    VEC R2 = vset(0);
    for (int i = 0; i < 3; ++i) {
        X[i] = (bra[1 + i] - vload(ket + (1 + i) * LANES)) + (bra[11 + i] - vload(ket + (11 + i) * LANES));
        R2 += X[i] * X[i];
    }
    const VEC root = vrsqrt(vset(1) + bra[0] * vload(ket)), rho = bra[0] * root * root;
    boys_any((int)L, rho * R2, boys_table, F);
    VEC factor = root * vload(ket + 4 * LANES);
    for (INDEX n = 0; n <= L; ++n) F[n] *= factor, factor *= REAL(-2) * rho;
    R[0] = F[L];
    for (INDEX n = L - 1; n >= 0; --n)
        for (INDEX t = L - n; t >= 0; --t)
            for (INDEX u = L - n - t; u >= 0; --u) {
                VEC* row = R + (t * side + u) * side;
                INDEX v = L - n - t - u;
                if (v > 0) {
                    VEC below = row[v - 1];
                    for (; v > 1; --v) {
                        const VEC next = row[v - 2];
                        row[v] = X[2] * below + REAL(v - 1) * next;
                        below = next;
                    }
                    row[1] = X[2] * below;
                }
                if (u > 0) {
                    row[0] = X[1] * row[-side];
                    if (u > 1) row[0] += REAL(u - 1) * row[-2 * side];
                } else if (t > 0) {
                    row[0] = X[0] * row[-side * side];
                    if (t > 1) row[0] += REAL(t - 1) * row[-2 * side * side];
                } else {
                    row[0] = F[n];
                }
            }
}

// Sinks of sums[column][row]: T of the panel, for every contraction column of the bra, or the integrals.
struct Halfway {
    VEC* T;
    const REAL* coefficient;
    INDEX columns, step;  // step: vectors from one contraction column to the next
    bool first;
    template <int COUNT> FN_MEMBER void take(INDEX j0, const VEC (&sum)[COUNT][PANEL]) const {
        VEC* target = T + j0 * PANEL;
        for (INDEX q = 0; q < columns; ++q, target += step) {
            const REAL x = coefficient[q];
            if (first) {
                UNROLL for (int j = 0; j < COUNT; ++j) UNROLL for (int i = 0; i < PANEL; ++i) target[j * PANEL + i] = x * sum[j][i];
            } else {
                UNROLL for (int j = 0; j < COUNT; ++j) UNROLL for (int i = 0; i < PANEL; ++i) target[j * PANEL + i] += x * sum[j][i];
            }
        }
    }
};

struct Finish {
    VEC* out;
    const REAL* coefficient;
    INDEX columns, functions, ket_functions;
    bool first;
    const int* rows;
    template <int COUNT> FN_MEMBER void take(INDEX j0, const VEC (&sum)[COUNT][PANEL]) const {
        VEC* target = out + j0;
        for (INDEX q = 0; q < columns; ++q, target += functions) {
            const REAL x = coefficient[q];
            UNROLL for (int i = 0; i < PANEL; ++i) {
                if (rows[i] < 0) continue;
                VEC* row = target + rows[i] * ket_functions;
                if (first) {
                    UNROLL for (int j = 0; j < COUNT; ++j) row[j] = x * sum[j][i];
                } else {
                    UNROLL for (int j = 0; j < COUNT; ++j) row[j] += x * sum[j][i];
                }
            }
        }
    }
};

// A panel of the bra's E times COUNT columns of R, or of the kets' potentials; `place`: places of the Hermite Gaussians in
// a column.
template <int COUNT, class SINK>
static inline void bra_product(const int* hermite, INDEX hermites, const int* place, const REAL* E, const VEC* R,
                               const int* column, INDEX j0, const SINK& sink) {
    const VEC* from[COUNT];
    VEC sum[COUNT][PANEL];
    UNROLL for (int j = 0; j < COUNT; ++j) {
        from[j] = R + column[j0 + j];
        UNROLL for (int i = 0; i < PANEL; ++i) sum[j][i] = VEC{};
    }
    NO_UNROLL for (INDEX n = 0; n < hermites; ++n, E += PANEL) {
        const INDEX at = place[hermite[n]];
        UNROLL for (int j = 0; j < COUNT; ++j) {
            const VEC r = from[j][at];
            UNROLL for (int i = 0; i < PANEL; ++i) sum[j][i] += E[i] * r;
        }
    }
    sink.template take<COUNT>(j0, sum);
}

template <class SINK>
static void bra_products(const int* hermite, INDEX hermites, const int* place, const REAL* E, const VEC* R, const int* column,
                         INDEX columns, const SINK& sink) {
    INDEX j = 0;
    for (; j + COLUMNS_AT_ONCE <= columns; j += COLUMNS_AT_ONCE)
        bra_product<COLUMNS_AT_ONCE>(hermite, hermites, place, E, R, column, j, sink);
    switch (columns - j) {
    case 4: bra_product<4>(hermite, hermites, place, E, R, column, j, sink); break;
    case 3: bra_product<3>(hermite, hermites, place, E, R, column, j, sink); break;
    case 2: bra_product<2>(hermite, hermites, place, E, R, column, j, sink); break;
    case 1: bra_product<1>(hermite, hermites, place, E, R, column, j, sink); break;
    }
}

// COUNT rows of a panel of the ket's E, beginning with row FROM, times a panel of T: integrals.
template <int FROM, int COUNT>
static inline void ket_product(const int* hermite, INDEX hermites, const VEC* T, const VEC* E, const int* rows,
                               const int* columns, INDEX functions, bool first, VEC* out) {
    VEC sum[COUNT][PANEL];
    UNROLL for (int j = 0; j < COUNT; ++j) UNROLL for (int i = 0; i < PANEL; ++i) sum[j][i] = VEC{};
    NO_UNROLL for (INDEX n = 0; n < hermites; ++n, E += PANEL) {
        const VEC* row = T + (INDEX)hermite[n] * PANEL;
        VEC t[PANEL];
        UNROLL for (int i = 0; i < PANEL; ++i) t[i] = row[i];
        UNROLL for (int j = 0; j < COUNT; ++j) {
            const VEC e = E[FROM + j];
            UNROLL for (int i = 0; i < PANEL; ++i) sum[j][i] += t[i] * e;
        }
    }
    UNROLL for (int i = 0; i < PANEL; ++i) {
        if (rows[i] < 0) continue;
        VEC* target = out + rows[i] * functions;
        UNROLL for (int j = 0; j < COUNT; ++j)
            if (columns[FROM + j] >= 0) target[columns[FROM + j]] = first ? sum[j][i] : target[columns[FROM + j]] + sum[j][i];
    }
}

static void ket_products(const int* hermite, INDEX hermites, const VEC* T, const VEC* E, const int* rows, const int* columns,
                         INDEX functions, bool first, VEC* out) {
    if (COLUMNS_AT_ONCE == PANEL) return ket_product<0, PANEL>(hermite, hermites, T, E, rows, columns, functions, first, out);
    ket_product<0, 2>(hermite, hermites, T, E, rows, columns, functions, first, out);
    if (columns[2] >= 0) ket_product<2, 2>(hermite, hermites, T, E, rows, columns, functions, first, out);
    if (columns[4] >= 0) ket_product<4, 1>(hermite, hermites, T, E, rows, columns, functions, first, out);
}

// COUNT rows of a panel of the ket's E times COLUMNS_AT_ONCE (at most `left`) columns of R: potentials [function, Hermite Gaussian].
template <int COUNT>
static inline void potential(const int* hermite, INDEX hermites, const int* place, const VEC* E, const VEC* R, const int* column,
                             INDEX left, const int* rows, INDEX bra_hermites, bool first, VEC* S) {
    const VEC* from[COLUMNS_AT_ONCE];
    VEC sum[COLUMNS_AT_ONCE][COUNT];
    UNROLL for (int j = 0; j < COLUMNS_AT_ONCE; ++j) {
        from[j] = R + column[j < left ? j : 0];
        UNROLL for (int i = 0; i < COUNT; ++i) sum[j][i] = VEC{};
    }
    NO_UNROLL for (INDEX n = 0; n < hermites; ++n, E += PANEL) {
        const INDEX at = place[hermite[n]];
        VEC e[COUNT];
        UNROLL for (int i = 0; i < COUNT; ++i) e[i] = E[i];
        UNROLL for (int j = 0; j < COLUMNS_AT_ONCE; ++j) {
            const VEC r = from[j][at];
            UNROLL for (int i = 0; i < COUNT; ++i) sum[j][i] += e[i] * r;
        }
    }
    UNROLL for (int i = 0; i < COUNT; ++i) {
        VEC* target = S + rows[i] * bra_hermites;
        UNROLL for (int j = 0; j < COLUMNS_AT_ONCE; ++j)
            if (j < left) target[j] = first ? sum[j][i] : target[j] + sum[j][i];
    }
}

static void potentials(const Matrices& m, const PairPlan& plan, const VEC* E, const VEC* R, bool first, VEC* S) {
    for (INDEX s = 0; s < plan.panels; ++s) {
        const INDEX start = plan.start[s], hermites = plan.start[s + 1] - start;
        const int *hermite = plan.hermites + start, *rows = plan.rows + s * PANEL;
        const VEC* mine = E + start * PANEL;
        int count = PANEL;
        while (rows[count - 1] < 0) --count;
        for (INDEX j = 0; j < m.bra_hermites; j += COLUMNS_AT_ONCE) {
            const INDEX left = m.bra_hermites - j;
            switch (count) {
            case 1: potential<1>(hermite, hermites, m.ket_places, mine, R, m.bra_places + j, left, rows, m.bra_hermites, first, S + j); break;
            case 2: potential<2>(hermite, hermites, m.ket_places, mine, R, m.bra_places + j, left, rows, m.bra_hermites, first, S + j); break;
            case 3: potential<3>(hermite, hermites, m.ket_places, mine, R, m.bra_places + j, left, rows, m.bra_hermites, first, S + j); break;
            case 4: potential<4>(hermite, hermites, m.ket_places, mine, R, m.bra_places + j, left, rows, m.bra_hermites, first, S + j); break;
            default: potential<5>(hermite, hermites, m.ket_places, mine, R, m.bra_places + j, left, rows, m.bra_hermites, first, S + j);
            }
        }
    }
}

// Axes, as bits, along which both centres of a bra, or of all kets of a vector, have the same coordinate.
static int parity_of(const REAL* distance, INDEX step, INDEX lanes) {
    int parity = 7;
    for (int i = 0; i < 3; ++i)
        for (INDEX lane = 0; lane < lanes; ++lane)
            if (distance[i * step + lane] != 0) parity &= ~(1 << i);
    return parity;
}

static const PairPlan& plan_for(const void* plans, int parity) {
    const PairPlan* plan = (const PairPlan*)plans;
    return plan[parity].coefficients ? plan[parity] : plan[0];
}

// A vector of kets as rounds: their primitives of the same number, or LANES primitives of the ket of one lane. Kets with many
// more primitives than the others of their vector would leave most lanes empty.
struct Round {
    int lane;  // -1: a primitive of every ket
    const PairPlan* plan;
    const VEC* E;
    const REAL* record;  // [field][lane]
};

// The thread keeps the rounds of the last vector of kets, which are needed for all classes of bras.
struct KetRounds {
    Workspace memory;
    INDEX stamp = -1, ket = -1, count, common;  // common: rounds with a primitive of every ket, which are the first ones
    const REAL* source = nullptr;
    Round* round;

    void prepare(const Sides& x, const Matrices& m, INDEX first) {
        if (stamp == m.stamp && source == x.ket_record && ket == first) return;
        stamp = m.stamp, source = x.ket_record, ket = first;
        const INDEX block = first / BLOCK, lane = first % BLOCK, begin = x.ket_first[block], end = x.ket_first[block + 1];
        const REAL *record = x.ket_record + begin * KET_FIELDS * BLOCK + lane, *distance = x.ket_shell + block * SHELL_FIELDS * BLOCK + lane;
        INDEX primitives[LANES];
        for (int l = 0; l < LANES; ++l) {
            primitives[l] = 0;
            while (begin + primitives[l] < end && record[(primitives[l] * KET_FIELDS + SIZE) * BLOCK + l] >= 0) ++primitives[l];
        }
        choose(primitives);
        const PairPlan* plan[LANES + 1];
        INDEX largest = 0;
        for (int l = 0; l <= LANES; ++l) {
            plan[l] = &plan_for(m.ket_plans, l < LANES ? parity_of(distance + l, BLOCK, 1) : parity_of(distance, BLOCK, LANES));
            largest = plan[l]->coefficients > largest ? plan[l]->coefficients : largest;
        }
        const int lc = (int)plan[0]->la, ld = (int)plan[0]->lb, size = (lc + 1) * (ld + 1) * (lc + ld + 1);
        const INDEX vectors = count * (largest + KET_FIELDS) + 3 * size;
        VEC* E = (VEC*)memory.ask(vectors * sizeof(VEC) + count * sizeof(Round));
        VEC *fields = E + count * largest, *axes = fields + count * KET_FIELDS;
        round = (Round*)(axes + 3 * size);
        INDEX r = 0;
        for (; r < common; ++r) {
            round[r] = Round{-1, plan[LANES], E + r * largest, (REAL*)(fields + r * KET_FIELDS)};
            for (INDEX f = 0; f < KET_FIELDS; ++f) fields[r * KET_FIELDS + f] = vload(record + (r * KET_FIELDS + f) * BLOCK);
        }
        for (int l = 0; l < LANES; ++l)
            for (INDEX c = common; c < primitives[l]; c += LANES, ++r) {
                round[r] = Round{l, plan[l], E + r * largest, (REAL*)(fields + r * KET_FIELDS)};
                for (int i = 0; i < LANES; ++i) {
                    const bool there = c + i < primitives[l];
                    const REAL* from = record + (there ? c + i : c) * KET_FIELDS * BLOCK + l;
                    for (INDEX f = 0; f < KET_FIELDS; ++f) fields[r * KET_FIELDS + f][i] = from[f * BLOCK];
                    if (!there) fields[r * KET_FIELDS + 4][i] = 0, fields[r * KET_FIELDS + SIZE][i] = -1;
                }
            }
        for (r = 0; r < count; ++r) {
            const VEC* from = fields + r * KET_FIELDS;
            for (int i = 0; i < 3; ++i) expansion<VEC>(lc, ld, from[5 + i], from[8 + i], REAL(0.5) * from[0], axes + i * size);
            coefficients<VEC>(*round[r].plan, axes, (VEC*)round[r].E);
        }
    }

    // The number of common rounds for the fewest rounds in all; a round of one lane also costs the sum over its lanes.
    void choose(const INDEX* primitives) {
        INDEX most = 0;
        for (int l = 0; l < LANES; ++l) most = primitives[l] > most ? primitives[l] : most;
        count = common = most;
        for (int k = 0; k < LANES; ++k) {
            INDEX rounds = primitives[k], lanes = 0;
            for (int l = 0; l < LANES; ++l)
                if (primitives[l] > primitives[k]) rounds += (primitives[l] - primitives[k] + LANES - 1) / LANES, ++lanes;
            if (rounds + lanes < count) count = rounds, common = primitives[k];
        }
    }
};
static thread_local KetRounds kets_now;

static bool significant(const Sides& x, const REAL* bra, const REAL* ket) {
    return vany(bra[SIZE] * vload(ket + SIZE * LANES) >= REAL(x.cutoff));
}

static void clear(const Sides& x, const Matrices& m, const PairPlan& plan, INDEX begin, INDEX end, VEC* out) {
    for (INDEX q = 0; q < x.columns; ++q, out += m.bra_functions * m.ket_functions)
        for (INDEX i = begin * PANEL; i < end * PANEL; ++i)
            for (INDEX f = 0; plan.rows[i] >= 0 && f < m.ket_functions; ++f) out[plan.rows[i] * m.ket_functions + f] = vset(0);
}

// Bra first: the panels `begin` to `end` of bra b with the kets.
static void bra_first(const Sides& x, const Matrices& m, const PairPlan& plan, INDEX b, INDEX begin, INDEX end, VEC* R,
                      VEC* T, VEC* out) {
    const INDEX panel_size = m.ket_hermites * PANEL;
    const INDEX functions = m.bra_functions * m.ket_functions, step = (end - begin) * panel_size;
    bool first = true;
    for (INDEX r = 0; r < kets_now.count; ++r) {
        const PairPlan& ket_plan = *kets_now.round[r].plan;
        const VEC* E_ket = kets_now.round[r].E;
        const REAL* from = kets_now.round[r].record;
        bool empty = true;
        for (INDEX k = x.bra_first[b]; k < x.bra_first[b + 1]; ++k, empty = false) {
            const REAL* bra = x.bra_record + k * BRA_FIELDS;
            if (!significant(x, bra, from)) break;
            hermite_cube(m, bra, from, x.boys_table, R);
            for (INDEX p = begin; p < end; ++p) {
                const INDEX start = plan.start[p];
                bra_products(plan.hermites + start, plan.start[p + 1] - start, m.bra_places,
                             m.bra_expansion + m.bra_start[k] + start * PANEL, R, m.ket_places, m.ket_hermites,
                             Halfway{T + (p - begin) * panel_size, x.bra_coefficient + k * x.columns, x.columns, step, empty});
            }
        }
        if (empty) break;
        for (INDEX q = 0; q < x.columns; ++q)
            for (INDEX s = 0; s < ket_plan.panels; ++s) {
                const INDEX start = ket_plan.start[s];
                for (INDEX p = begin; p < end; ++p)
                    ket_products(ket_plan.hermites + start, ket_plan.start[s + 1] - start, T + q * step + (p - begin) * panel_size,
                                 E_ket + start * PANEL, plan.rows + p * PANEL, ket_plan.rows + s * PANEL, m.ket_functions, first,
                                 out + q * functions);
            }
        first = false;
    }
    if (first) clear(x, m, plan, begin, end, out);
}

// Add the potentials of a primitive of the bra in the kets to S[ket function][Hermite Gaussian]; returns whether there are any.
static bool add_rounds(const Sides& x, const Matrices& m, const REAL* bra, VEC* R, VEC* S) {
    const INDEX size = m.bra_hermites * m.ket_functions;
    bool empty = true;
    INDEX r = 0;
    for (; r < kets_now.common && significant(x, bra, kets_now.round[r].record); ++r, empty = false) {
        hermite_cube(m, bra, kets_now.round[r].record, x.boys_table, R);
        potentials(m, *kets_now.round[r].plan, kets_now.round[r].E, R, empty, S);
    }
    VEC* own = S + size;  // of one lane
    for (r = kets_now.common; r < kets_now.count;) {
        const int lane = kets_now.round[r].lane;
        bool none = true;
        for (; r < kets_now.count && kets_now.round[r].lane == lane; ++r) {
            if (!significant(x, bra, kets_now.round[r].record)) continue;
            hermite_cube(m, bra, kets_now.round[r].record, x.boys_table, R);
            potentials(m, *kets_now.round[r].plan, kets_now.round[r].E, R, none, own);
            none = false;
        }
        if (none) continue;
        for (INDEX i = 0; empty && i < size; ++i) S[i] = vset(0);
        for (INDEX i = 0; i < size; ++i) S[i][lane] += vsum(own[i]);
        empty = false;
    }
    return !empty;
}

// Kets first: bra b with the kets, whose primitives are summed before the functions of the bra are formed.
static void kets_first(const Sides& x, const Matrices& m, const PairPlan& plan, INDEX b, VEC* R, VEC* S, VEC* out) {
    bool first = true;
    for (INDEX k = x.bra_first[b]; k < x.bra_first[b + 1]; ++k, first = false) {
        if (!add_rounds(x, m, x.bra_record + k * BRA_FIELDS, R, S)) break;
        for (INDEX p = 0; p < plan.panels; ++p) {
            const INDEX start = plan.start[p];
            bra_products(plan.hermites + start, plan.start[p + 1] - start, m.identity,
                         m.bra_expansion + m.bra_start[k] + start * PANEL, S, m.ket_columns, m.ket_functions,
                         Finish{out, x.bra_coefficient + k * x.columns, x.columns, m.bra_functions * m.ket_functions,
                                m.ket_functions, first, plan.rows + p * PANEL});
        }
    }
    if (first) clear(x, m, plan, 0, plan.panels, out);
}

// Whether the sum over the kets' primitives should come first: the multiplications of both orders. Rounds of one lane need it.
static bool kets_are_first(const Sides& x, const Matrices& m, const PairPlan& plan, INDEX b) {
    if (kets_now.common < kets_now.count) return true;
    const double bras = x.bra_first[b + 1] - x.bra_first[b], kets = kets_now.count;
    const double E_bra = plan.coefficients, E_ket = kets ? kets_now.round[0].plan->coefficients : 0, columns = x.columns;
    const double functions = (double)m.bra_functions * m.ket_functions;
    const double bra = bras * kets * (E_bra + columns * m.bra_functions) * m.ket_hermites + kets * columns * m.bra_functions * E_ket;
    const double ket_order = bras * kets * m.bra_hermites * (E_ket + m.ket_functions) + bras * (E_bra * m.ket_functions + columns * functions);
    return ket_order < bra;
}

KERNEL(1) ENTRY(PARAMETERS) {
    const Sides x = SIDES;
    const Matrices& m = *(const Matrices*)tables;
    const INDEX panel_size = m.ket_hermites * PANEL, fit = HALFWAY / (panel_size * x.columns), group = fit ? fit : 1;
    const INDEX halfway = group * panel_size * x.columns, other = 2 * m.bra_hermites * m.ket_functions;
    VEC* R = lane_memory(m.cube + (halfway > other ? halfway : other));
    VEC *T = R + m.cube, *target = (VEC*)out;
    for (INDEX item = 0; item < count; ++item, target += x.columns * m.bra_functions * m.ket_functions) {
        const INDEX b = list[2 * item];
        kets_now.prepare(x, m, list[2 * item + 1]);
        const PairPlan& plan = plan_for(m.bra_plans, parity_of(x.bra_shell + b * SHELL_FIELDS, 1, 1));
        if (kets_are_first(x, m, plan, b)) {
            kets_first(x, m, plan, b, R, T, target);
            continue;
        }
        for (INDEX p = 0; p < plan.panels; p += group)
            bra_first(x, m, plan, b, p, p + group < plan.panels ? p + group : plan.panels, R, T, target);
    }
}
