// Density, gradient and kinetic-energy density at the points of blocks of groups: out[spin][component][point].
// `given`: density matrices [spin][nbf][nbf], or with ORBITALS their factors C [spin][nbf][width], D = C C^T.

// rho, and with `gradient` its gradient: sums over rows of value * product.
FN void finish_density(const REAL* values, const REAL* product, INDEX rows, INDEX stride, REAL* out, bool gradient) {
    VEC rho[VECTORS], slope[3][VECTORS];
    UNROLL for (int v = 0; v < VECTORS; ++v) rho[v] = slope[0][v] = slope[1][v] = slope[2][v] = vset(0);
    NO_UNROLL for (INDEX p = 0; p < rows; ++p)
        UNROLL for (int v = 0; v < VECTORS; ++v) {
            const INDEX at = p * PANEL + v * LANES;
            const VEC X = vload(product + at);
            rho[v] = vfma(vload(values + at), X, rho[v]);
            if (gradient)
                UNROLL for (int x = 0; x < 3; ++x)
                    slope[x][v] = vfma(vload(values + (x + 1) * rows * PANEL + at), X, slope[x][v]);
        }
    UNROLL for (int v = 0; v < VECTORS; ++v) {
        vstore(out + v * LANES, rho[v]);
        if (gradient)
            UNROLL for (int x = 0; x < 3; ++x) vstore(out + (x + 1) * stride + v * LANES, slope[x][v] * REAL(2));
    }
}

// The points of one task; `given` are matrices of `nbf` functions, in which those of the group have the numbers task.ao.
static void density_of(const Task& task, const double* position, INDEX stride, const int* shell, const double* centre,
                       const double* primitive, const REAL* given, INDEX nbf, int width, int spins, REAL* scratch, REAL* out) {
    const int functions = task.functions, runs = task.runs;
    const int *ao = task.ao, *run_row = task.run_row, *run_ao = task.run_ao, *tile_depth = task.tile_depth;
    const REAL* kept = task.kept;
    const INDEX rows = up(functions, ROWS), tiles = up(functions, TILE), orbitals = up(width, TILE);
    const INDEX packed = ORBITALS ? 2 * orbitals * tiles : (1 + KINETIC) * tiles * tiles;
    REAL* values = scratch + spins * packed;
    REAL* product = values + VALUES * rows * PANEL;
    REAL* psi = product + VALUES * rows * PANEL;
    clear_rows(values, VALUES, rows, functions);
    clear_rows(product, VALUES, rows, functions / TILE * TILE);
    for (int s = 0; s < spins; ++s) {
        REAL* A = scratch + s * packed;
#if ORBITALS
        pack_orbitals(A, functions, ao, given + s * nbf * width, width);
#else
        const REAL* D = given + s * nbf * nbf;
#if GRADIENT
        pack_matrix(A, tiles, functions, ao, run_row, run_ao, runs, tile_depth, D, nbf, false);
        A += tiles * tiles;
#endif
#if KINETIC || !GRADIENT
        pack_matrix(A, tiles, functions, ao, run_row, run_ao, runs, tile_depth, D, nbf, true);
#endif
#endif
    }
    for (INDEX g = task.begin; g < task.end; g += PANEL) {
        const REAL* chi = values;
        if (kept) {
            chi = kept;
            kept += VALUES * rows * PANEL;
        } else {
            panel_values(g, position, stride, task.list_shell, task.list_row, task.list_count, shell, centre, primitive, rows,
                         values);
        }
        for (int s = 0; s < spins; ++s) {
            const REAL* A = scratch + s * packed;
            REAL* place = out + s * COMPONENTS * stride + g;
#if ORBITALS && KINETIC
            // psi and its gradient; rows of `psi` are orbitals
            UNROLL for (int c = 0; c < 4; ++c)
                panel_product(A, orbitals, functions, chi + c * rows * PANEL, psi + c * orbitals * PANEL);
            finish_density(psi, psi, orbitals, stride, place, true);
            VEC tau[VECTORS];
            UNROLL for (int v = 0; v < VECTORS; ++v) tau[v] = vset(0);
            for (INDEX i = orbitals; i < 4 * orbitals; ++i)
                UNROLL for (int v = 0; v < VECTORS; ++v) {
                    const VEC slope = vload(psi + i * PANEL + v * LANES);
                    tau[v] = vfma(slope, slope, tau[v]);
                }
            UNROLL for (int v = 0; v < VECTORS; ++v) vstore(place + 4 * stride + v * LANES, tau[v] * REAL(0.5));
#elif ORBITALS && !GRADIENT
            panel_product(A, orbitals, functions, chi, psi);
            finish_density(psi, psi, orbitals, stride, place, false);
#elif ORBITALS
            panel_product(A, orbitals, functions, chi, psi);
            panel_product(A + orbitals * tiles, tiles, width, psi, product);
            finish_density(chi, product, rows, stride, place, true);
#else
            panel_product(A, tiles, functions, chi, product, !GRADIENT, tile_depth);
            finish_density(chi, product, rows, stride, place, GRADIENT);
#if KINETIC
            VEC tau[VECTORS];
            UNROLL for (int v = 0; v < VECTORS; ++v) tau[v] = vset(0);
            for (int c = 1; c < 4; ++c) {
                panel_product(A + tiles * tiles, tiles, functions, chi + c * rows * PANEL, product + rows * PANEL, true,
                              tile_depth);
                for (INDEX p = 0; p < tiles; ++p)
                    UNROLL for (int v = 0; v < VECTORS; ++v) {
                        const INDEX at = (p + rows) * PANEL + v * LANES;
                        tau[v] = vfma(vload(chi + (c - 1) * rows * PANEL + at), vload(product + at), tau[v]);
                    }
            }
            UNROLL for (int v = 0; v < VECTORS; ++v) vstore(place + 4 * stride + v * LANES, tau[v] * REAL(0.5));
#endif
#endif
        }
    }
}

extern "C" void ENTRY(PARAMETERS) {
    for (INDEX b = begin; b < end; ++b) {
        const Given block = local ? take_part(PART_OF(b), spins, nbf, width, given, (REAL*)scratch) : Given{given, nbf};
        for (INDEX t = block_task[b]; t < block_task[b + 1]; ++t)
            density_of(TASK_OF(t), position, stride, shell, centre, primitive, block.values, block.functions, width, spins,
                       (REAL*)scratch + local, out);
    }
}
