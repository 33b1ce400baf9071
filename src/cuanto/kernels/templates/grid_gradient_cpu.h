// Derivative of the energy with respect to atoms, at a fixed density matrix, from the points of blocks of groups: functions
// move with their atoms, and so do points unless `own` is null. With v = potential[spin][component][point],
//   L_0 = D (4 v_0 chi + 2 v . grad chi),  L_c = D (2 v_c chi + 4 v_tau d_c chi),
// a displacement of function p along x changes the energy by -(d_x chi_p L_0 + sum_c d_cx chi_p L_c) at every point.
#define PRODUCTS (KINETIC ? 4 : 1 + GRADIENT)
TABLE int SECOND[3][3] = {{4, 5, 6}, {5, 7, 8}, {6, 8, 9}};  // components of values

// right: the right-hand sides, which D is multiplied by; for GGA L_c = 2 v_c D chi needs only the values
FN void weigh(const REAL* chi, INDEX functions, INDEX size, const REAL* v, INDEX stride, REAL* right) {
    NO_UNROLL for (int n = 0; n < VECTORS; ++n) {
        VEC potential[COMPONENTS];
        UNROLL for (int c = 0; c < COMPONENTS; ++c) potential[c] = vload(v + c * stride + n * LANES);
        NO_UNROLL for (INDEX f = 0; f < functions; ++f) {
            const REAL* at = chi + f * PANEL + n * LANES;
            REAL* place = right + f * PANEL + n * LANES;
            const VEC value = vload(at);
            VEC sum = potential[0] * value * REAL(2);
#if GRADIENT
            UNROLL for (int c = 1; c < 4; ++c) {
                const VEC slope = vload(at + c * size);
                sum = vfma(potential[c], slope, sum);
#if KINETIC
                vstore(place + c * size, (potential[c] * value + potential[4] * slope * REAL(2)) * REAL(2));
#endif
            }
#endif
            vstore(place, sum * REAL(2));
        }
    }
}

// Add the forces of one spin at the points of a panel to those on shells [shell][axis][lane] and, unless `own` is null (fixed
// points), to the `sums` of the points' atoms.
FN void panel_forces(const Task& task, const int* shell, const REAL* chi, const REAL* product, INDEX size, const REAL* v,
                     INDEX stride, const int* own, REAL* force, double* sums) {
    NO_UNROLL for (int n = 0; n < VECTORS; ++n) {
        VEC here[3] = {vset(0), vset(0), vset(0)};
#if GRADIENT && !KINETIC
        VEC slope_potential[3];
        UNROLL for (int x = 0; x < 3; ++x) slope_potential[x] = vload(v + (1 + x) * stride + n * LANES) * REAL(2);
#endif
        NO_UNROLL for (int k = 0; k < task.list_count; ++k) {
            const int* record = shell + SHELL_FIELDS * (INDEX)task.list_shell[k];
            const INDEX first = task.list_row[k], last = first + functions_in(record[0]) * record[2];
            VEC sum[3] = {vset(0), vset(0), vset(0)};
            NO_UNROLL for (INDEX f = first; f < last; ++f) {
                const REAL *at = chi + f * PANEL + n * LANES, *L = product + f * PANEL + n * LANES;
                const VEC by_value = vload(L);
                UNROLL for (int x = 0; x < 3; ++x) {
                    sum[x] = vfma(vload(at + (1 + x) * size), by_value, sum[x]);
#if KINETIC
                    UNROLL for (int c = 0; c < 3; ++c)
                        sum[x] = vfma(vload(at + SECOND[c][x] * size), vload(L + (1 + c) * size), sum[x]);
#elif GRADIENT
                    VEC bend = slope_potential[0] * vload(at + SECOND[0][x] * size);
                    UNROLL for (int c = 1; c < 3; ++c)
                        bend = vfma(slope_potential[c], vload(at + SECOND[c][x] * size), bend);
                    sum[x] = vfma(bend, vload(L + size), sum[x]);
#endif
                }
            }
            UNROLL for (int x = 0; x < 3; ++x) {
                REAL* place = force + (3 * k + x) * LANES;
                vstore(place, vload(place) + sum[x]);
                here[x] = here[x] + sum[x];
            }
        }
        if (own)
            for (int x = 0; x < 3; ++x) FOR_LANES(LANES) sums[3 * own[n * LANES + lane] + x] += LANE(here[x]);
    }
}

// The points of one task; `given`: matrices of `nbf` functions, or with ORBITALS their factors, in which the functions of the
// group have the numbers task.ao; `sums`: [atom][axis].
static void add_forces(const Task& task, const double* position, INDEX stride, const int* shell, const double* centre,
                       const double* primitive, const REAL* given, INDEX nbf, int width, int spins, const REAL* potential,
                       const int* shell_atom, const int* own, REAL* scratch, double* sums) {
    const int functions = task.functions;
    const INDEX rows = up(functions, ROWS), tiles = up(functions, TILE), orbitals = up(width, TILE), size = rows * PANEL;
    const INDEX packed = ORBITALS ? 2 * orbitals * tiles : tiles * tiles;
    REAL *chi = scratch + spins * packed, *right = chi + VALUES * size, *product = right + PRODUCTS * size;
    REAL *force = product + PRODUCTS * size, *psi = force + 3 * rows * LANES;
    for (int s = 0; s < spins; ++s)
#if ORBITALS
        pack_orbitals(scratch + s * packed, functions, task.ao, given + s * nbf * width, width);
#else
        pack_matrix(scratch + s * packed, tiles, functions, task.ao, task.run_row, task.run_ao, task.runs, task.tile_depth,
                    given + s * nbf * nbf, nbf, false);
#endif
    for (INDEX i = 0; i < 3 * task.list_count * LANES; ++i) force[i] = 0;
    for (INDEX g = task.begin; g < task.end; g += PANEL) {
        panel_values(g, position, stride, task.list_shell, task.list_row, task.list_count, shell, centre, primitive, rows, chi);
        for (int s = 0; s < spins; ++s) {
            const REAL *A = scratch + s * packed, *v = potential + s * COMPONENTS * stride + g;
            weigh(chi, functions, size, v, stride, right);
            for (int c = 0; c < PRODUCTS; ++c) {
                const REAL* in = c && !KINETIC ? chi : right + c * size;
#if ORBITALS
                panel_product(A, orbitals, functions, in, psi);
                panel_product(A + orbitals * tiles, tiles, width, psi, product + c * size);
#else
                panel_product(A, tiles, functions, in, product + c * size, false, task.tile_depth);
#endif
            }
            panel_forces(task, shell, chi, product, size, v, stride, own ? own + g : 0, force, sums);
        }
    }
    for (int k = 0; k < task.list_count; ++k)
        for (int x = 0; x < 3; ++x)
            sums[3 * shell_atom[task.list_shell[k]] + x] -= vsum(vload(force + (3 * k + x) * LANES));
}

extern "C" void ENTRY(PARAMETERS) {
    for (INDEX b = begin; b < end; ++b) {
        const Given block = local ? take_part(PART_OF(b), spins, nbf, width, given, (REAL*)scratch) : Given{given, nbf};
        for (INDEX t = block_task[b]; t < block_task[b + 1]; ++t)
            add_forces(TASK_OF(t), position, stride, shell, centre, primitive, block.values, block.functions, width, spins,
                       potential, shell_atom, own, (REAL*)scratch + local, SUMS(out));
    }
}
