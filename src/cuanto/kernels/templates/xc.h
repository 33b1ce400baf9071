// Energy density and its derivatives at points. From the variables themselves, rows of `stride` points: rho[spin],
// sigma[pair], tau[spin] -> e, v_rho, v_sigma, v_tau. Or (POTENTIAL) in the layout of a quadrature:
// rho[spin][component] -> e, v[spin][component] = w (v_rho / 2, 2 v_ss grad rho_s + v_st grad rho_t, v_tau / 4).
#if POTENTIAL
#define COMPONENTS (1 + 3 * GRADIENT + KINETIC)
#define RHO(s, c) vread(rho + ((s) * COMPONENTS + (c)) * stride + g, count)
#define POTENTIAL_OF(s, c, value) vwrite(v + ((s) * COMPONENTS + (c)) * stride + g, weight_of_points * (value), count)
#endif

KERNEL(THREADS) ENTRY(PARAMETERS) {
    FOR_VECTORS(g) {
        const int count = ITEMS_LEFT(g);
        VEC x[VARIABLES], y[VARIABLES + 1];
#if POTENTIAL
        UNROLL for (int s = 0; s < DENSITIES; ++s) x[s] = RHO(s, 0);
#if GRADIENT
        VEC slope[DENSITIES][3];
        UNROLL for (int s = 0; s < DENSITIES; ++s)
            UNROLL for (int k = 0; k < 3; ++k) slope[s][k] = RHO(s, 1 + k);
        UNROLL for (int i = 0; i < PAIRS; ++i) {
            const int s = i == 2, t = i > 0;  // aa, ab, bb
            x[SIGMA_AT + i] = slope[s][0] * slope[t][0] + slope[s][1] * slope[t][1] + slope[s][2] * slope[t][2];
        }
#endif
#if KINETIC
        UNROLL for (int s = 0; s < DENSITIES; ++s) x[TAU_AT + s] = RHO(s, 4);
#endif
        xc_point(x, y);
        vwrite(e + g, y[0], count);
        const VEC weight_of_points = vread(weight + g, count);
        UNROLL for (int s = 0; s < DENSITIES; ++s) {
            POTENTIAL_OF(s, 0, y[1 + s] * REAL(0.5));
#if GRADIENT
            UNROLL for (int k = 0; k < 3; ++k) {
                VEC sum = y[1 + SIGMA_AT + 2 * s] * slope[s][k] * REAL(2);
#if SPINS == 2
                sum = sum + y[2 + SIGMA_AT] * slope[1 - s][k];
#endif
                POTENTIAL_OF(s, 1 + k, sum);
            }
#endif
#if KINETIC
            POTENTIAL_OF(s, 4, y[1 + TAU_AT + s] * REAL(0.25));
#endif
        }
#else
        UNROLL for (int i = 0; i < DENSITIES; ++i) x[i] = vread(rho + i * stride + g, count);
#if GRADIENT
        UNROLL for (int i = 0; i < PAIRS; ++i) x[SIGMA_AT + i] = vread(sigma + i * stride + g, count);
#endif
#if KINETIC
        UNROLL for (int i = 0; i < DENSITIES; ++i) x[TAU_AT + i] = vread(tau + i * stride + g, count);
#endif
        xc_point(x, y);
        vwrite(e + g, y[0], count);
        UNROLL for (int i = 0; i < DENSITIES; ++i) vwrite(v_rho + i * stride + g, y[1 + i], count);
#if GRADIENT
        UNROLL for (int i = 0; i < PAIRS; ++i) vwrite(v_sigma + i * stride + g, y[1 + SIGMA_AT + i], count);
#endif
#if KINETIC
        UNROLL for (int i = 0; i < DENSITIES; ++i) vwrite(v_tau + i * stride + g, y[1 + TAU_AT + i], count);
#endif
#endif
    }
}
