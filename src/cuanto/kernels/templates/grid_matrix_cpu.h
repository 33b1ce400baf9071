// Contributions of blocks of groups of points to half of the Kohn-Sham matrix (its transpose is the other half):
// sum_g chi_p (v_0 chi_q + v . grad chi_q) + v_tau grad chi_p . grad chi_q, with v = potential[spin][component][point].
//
// The second factor is transposed, [tile of functions][point][function], so that sums stay in the lanes: a tile has TILE
// functions p and up to VECTORS vectors of functions q.
#define BLOCK_PANELS (BLOCK_POINTS / PANEL)
#define SYMMETRIC (KINETIC || !GRADIENT)

// log2(LANES) perfect shuffles of LANES vectors transpose a square.
#if LANES == 8
#define LOW 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH 4, 12, 5, 13, 6, 14, 7, 15
#elif LANES == 4
#define LOW 0, 4, 1, 5
#define HIGH 2, 6, 3, 7
#elif LANES == 2
#define LOW 0, 2
#define HIGH 1, 3
#endif
FN void transpose(VEC* square) {
    UNROLL for (int step = 1; step < LANES; step *= 2) {
        VEC mixed[LANES];
        UNROLL for (int i = 0; i < LANES / 2; ++i) {
            mixed[2 * i] = CUANTO_SHUFFLE_(square[i], square[i + LANES / 2], LOW);
            mixed[2 * i + 1] = CUANTO_SHUFFLE_(square[i], square[i + LANES / 2], HIGH);
        }
        UNROLL for (int i = 0; i < LANES; ++i) square[i] = mixed[i];
    }
}

// transposed[tile][point][function] of value(function, vector of points) for the points of a panel; `all` points in a block.
template <class F>
FN void transpose_panel(int functions, INDEX all, INDEX first, REAL* transposed, const F& value) {
    NO_UNROLL for (INDEX f = 0; f < functions; f += LANES)
        NO_UNROLL for (int v = 0; v < VECTORS; ++v) {
            VEC square[LANES];
            UNROLL for (int i = 0; i < LANES; ++i) square[i] = value(f + i, v);
            transpose(square);
            REAL* place = transposed + f / PANEL * all * PANEL + (first + v * LANES) * PANEL + f % PANEL;
            UNROLL for (int i = 0; i < LANES; ++i) vstore(place + i * PANEL, square[i]);
        }
}

FN void add_to(double* place, VEC v, bool fresh) {
#if CUANTO_SINGLE
    UNROLL for (int i = 0; i < LANES; ++i) place[i] = fresh ? v[i] : place[i] + v[i];
#else
    vstore(place, fresh ? v : vload(place) + v);
#endif
}

// sums[p][q] += sum over points of lhs[p] transposed[q], for TILE functions p and COUNT vectors of functions q; `fresh` sums
// are not initialised
template <int COUNT>
FN void add_tile(const REAL* lhs, INDEX lhs_step, const REAL* transposed, int panels, INDEX rows, double* sums, bool fresh) {
    VEC sum[TILE][COUNT];
    UNROLL for (int i = 0; i < TILE; ++i)
        UNROLL for (int j = 0; j < COUNT; ++j) sum[i][j] = vset(0);
    NO_UNROLL for (int panel = 0; panel < panels; ++panel, lhs += lhs_step)
        NO_UNROLL for (int g = 0; g < PANEL; ++g, transposed += PANEL) {
            VEC right[COUNT];
            UNROLL for (int j = 0; j < COUNT; ++j) right[j] = vload(transposed + j * LANES);
            UNROLL for (int i = 0; i < TILE; ++i) {
                const VEC left = vset(lhs[i * PANEL + g]);
                UNROLL for (int j = 0; j < COUNT; ++j) sum[i][j] = vfma(left, right[j], sum[i][j]);
            }
        }
    UNROLL for (int i = 0; i < TILE; ++i)
        UNROLL for (int j = 0; j < COUNT; ++j) add_to(sums + i * rows + j * LANES, sum[i][j], fresh);
}

// All significant tiles: functions q < tile_depth of p, which does not grow with p; with `symmetric` only tiles on or left of
// the diagonal.
FN void add_products(const REAL* lhs, INDEX lhs_step, const REAL* transposed, int functions, INDEX rows, int panels,
                     bool symmetric, const int* tile_depth, double* sums, bool fresh) {
    NO_UNROLL for (INDEX q = 0; q < functions; q += PANEL, transposed += panels * PANEL * PANEL)
        NO_UNROLL for (INDEX p = symmetric ? q / TILE * TILE : 0; p < functions; p += TILE) {
            const REAL* left = lhs + p * PANEL;
            double* place = sums + p * rows + q;
            const INDEX depth = tile_depth[p / DEPTH_TILE], end = symmetric && p + TILE < depth ? p + TILE : depth;
            if (depth <= q) break;
            const INDEX vectors = (end - q + LANES - 1) / LANES;
            if (vectors >= 3) add_tile<3>(left, lhs_step, transposed, panels, rows, place, fresh);
            else if (vectors == 2) add_tile<2>(left, lhs_step, transposed, panels, rows, place, fresh);
            else if (vectors == 1) add_tile<1>(left, lhs_step, transposed, panels, rows, place, fresh);
        }
}

// Add `whole` sums, and `half` ones with the elements left of the diagonal doubled, because the transpose is added later.
FN void scatter(const Task& task, const double* whole, const double* half, INDEX rows, INDEX nbf, double* out) {
    const int *run_row = task.run_row, *run_ao = task.run_ao;
    for (int p = 0; p < task.functions; ++p) {
        const int depth = task.tile_depth[p / DEPTH_TILE];
        double* row = out + task.ao[p] * nbf;
        for (int k = 0; k < task.runs && run_row[k] < depth; ++k) {
            const int end = run_row[k + 1] < depth ? run_row[k + 1] : depth;
            double* place = row + run_ao[k] - run_row[k];
#if GRADIENT
            for (int q = run_row[k]; q < end; ++q) place[q] += whole[p * rows + q];
#endif
#if SYMMETRIC
            for (int q = run_row[k]; q < end && q < p; ++q) place[q] += 2 * half[p * rows + q];
#endif
        }
#if SYMMETRIC
        if (p < depth) row[task.ao[p]] += half[p * rows + p];
#endif
    }
}

// transposed = v_0 chi + v . grad chi
FN void weigh(const REAL* chi, int functions, INDEX rows, const REAL* v, INDEX stride, INDEX all, INDEX first,
              REAL* transposed) {
    transpose_panel(functions, all, first, transposed, [&](INDEX f, int n) {
        const INDEX at = f * PANEL + n * LANES;
        VEC sum = vload(v + n * LANES) * vload(chi + at);
        UNROLL for (int c = 1; c < VALUES; ++c)
            sum = vfma(vload(v + c * stride + n * LANES), vload(chi + c * rows * PANEL + at), sum);
        return sum;
    });
}

// The points of one task; `sums`: workspace for the matrices of its group, which are added to `out`.
static void add_matrix(const Task& task, const double* position, INDEX stride, const int* shell, const double* centre,
                       const double* primitive, const REAL* potential, int spins, double* sums, REAL* scratch, INDEX nbf,
                       double* out) {
    const int functions = task.functions, *tile_depth = task.tile_depth;
    const INDEX rows = up(functions, ROWS), size = rows * PANEL;
    REAL *values = scratch, *transposed = scratch + BLOCK_PANELS * VALUES * size;
    const INDEX per_spin = (1 + KINETIC) * rows * rows;
    const REAL* kept = task.kept;
    if (!kept) clear_rows(values, BLOCK_PANELS * VALUES, rows, functions);
    for (INDEX first = task.begin; first < task.end; first += BLOCK_PANELS * PANEL) {
        const INDEX left = (task.end - first) / PANEL;
        const int panels = left < BLOCK_PANELS ? (int)left : BLOCK_PANELS;
        const REAL* chi = values;
        if (kept) {
            chi = kept;
            kept += panels * VALUES * size;
        } else {
            for (int panel = 0; panel < panels; ++panel)
                panel_values(first + panel * PANEL, position, stride, task.list_shell, task.list_row, task.list_count, shell,
                             centre, primitive, rows, values + panel * VALUES * size);
        }
        for (int s = 0; s < spins; ++s) {
            const REAL* v = potential + s * COMPONENTS * stride + first;
            double* total = sums + s * per_spin;
            for (int panel = 0; panel < panels; ++panel)
                weigh(chi + panel * VALUES * size, functions, rows, v + panel * PANEL, stride, panels * PANEL,
                      panel * PANEL, transposed);
            add_products(chi, VALUES * size, transposed, functions, rows, panels, !GRADIENT, tile_depth, total, first == task.begin);
#if KINETIC
            for (int c = 1; c < 4; ++c) {
                for (int panel = 0; panel < panels; ++panel) {
                    const REAL* slope = chi + (panel * VALUES + c) * size;
                    const REAL* v_tau = v + 4 * stride + panel * PANEL;
                    transpose_panel(functions, panels * PANEL, panel * PANEL, transposed, [&](INDEX f, int n) {
                        return vload(v_tau + n * LANES) * vload(slope + f * PANEL + n * LANES);
                    });
                }
                add_products(chi + c * size, VALUES * size, transposed, functions, rows, panels, true, tile_depth,
                             total + rows * rows, first == task.begin && c == 1);
            }
#endif
        }
    }
    for (int s = 0; s < spins; ++s) {
        const double* total = sums + s * per_spin;
        scatter(task, total, total + KINETIC * rows * rows, rows, nbf, out + s * nbf * nbf);
    }
}

// `sums`: matrices [spin][function][function] of the functions of a block, one block in a chunk.
extern "C" void ENTRY(PARAMETERS) {
    for (INDEX b = begin; b < end; ++b) {
        const INDEX functions = PART_OF(b).functions;
        for (INDEX i = 0; i < spins * functions * functions; ++i) sums[i] = 0;
        for (INDEX t = block_task[b]; t < block_task[b + 1]; ++t)
            add_matrix(TASK_OF(t), position, stride, shell, centre, primitive, potential, spins, (double*)scratch,
                       (REAL*)((double*)scratch + group_sums), functions, sums);
    }
}

static void merge_blocks(PARAMETERS) {
    add_part(PART_OF(begin), spins, nbf, sums, out);
}
