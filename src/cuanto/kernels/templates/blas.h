// Matrix products by the host's BLAS on the calling thread, row-major; plain loops where no library was found.
// NUMBER is the type of matrices, double unless defined otherwise.
#ifndef NUMBER
#define NUMBER double
#endif
struct Blas {
    void *double_gemm, *double_gemv, *float_gemm, *float_gemv;
    INDEX wide;
};
static inline void* gemm_of(const Blas* blas) { return sizeof(NUMBER) == 8 ? blas->double_gemm : blas->float_gemm; }
static inline void* gemv_of(const Blas* blas) { return sizeof(NUMBER) == 8 ? blas->double_gemv : blas->float_gemv; }

#define CUANTO_CBLAS(INT)                                                                                          \
    typedef void (*gemm_##INT)(int, int, int, INT, INT, INT, NUMBER, const NUMBER*, INT, const NUMBER*, INT, NUMBER, \
                               NUMBER*, INT);                                                                      \
    typedef void (*gemv_##INT)(int, int, INT, INT, NUMBER, const NUMBER*, INT, const NUMBER*, INT, NUMBER, NUMBER*, INT);
typedef long long blas_wide;
typedef int blas_narrow;
CUANTO_CBLAS(blas_wide)
CUANTO_CBLAS(blas_narrow)
enum { ROW_MAJOR = 101, AS_IT_IS = 111, TRANSPOSED = 112 };

// C = beta C + op(A) op(B), op(A) m x k and op(B) k x n
static void product(const Blas* blas, bool transpose_a, bool transpose_b, INDEX m, INDEX n, INDEX k, const NUMBER* A, INDEX lda,
                    const NUMBER* B, INDEX ldb, NUMBER beta, NUMBER* C, INDEX ldc) {
    const int ta = transpose_a ? TRANSPOSED : AS_IT_IS, tb = transpose_b ? TRANSPOSED : AS_IT_IS;
    if (gemm_of(blas) && blas->wide) return ((gemm_blas_wide)gemm_of(blas))(ROW_MAJOR, ta, tb, m, n, k, 1, A, lda, B, ldb, beta, C, ldc);
    if (gemm_of(blas))
        return ((gemm_blas_narrow)gemm_of(blas))(ROW_MAJOR, ta, tb, (int)m, (int)n, (int)k, 1, A, (int)lda, B, (int)ldb, beta, C,
                                              (int)ldc);
    for (INDEX i = 0; i < m; ++i) {
        NUMBER* row = C + i * ldc;
        for (INDEX j = 0; j < n; ++j) row[j] = beta == 0 ? 0 : beta * row[j];
        for (INDEX l = 0; l < k; ++l) {
            const NUMBER a = transpose_a ? A[l * lda + i] : A[i * lda + l];
            if (transpose_b)
                for (INDEX j = 0; j < n; ++j) row[j] += a * B[j * ldb + l];
            else
                for (INDEX j = 0; j < n; ++j) row[j] += a * B[l * ldb + j];
        }
    }
}

// y = beta y + op(A) x, A m x n
static void product_with_vector(const Blas* blas, bool transpose, INDEX m, INDEX n, const NUMBER* A, INDEX lda, const NUMBER* x,
                                NUMBER beta, NUMBER* y) {
    const int ta = transpose ? TRANSPOSED : AS_IT_IS;
    if (gemv_of(blas) && blas->wide) return ((gemv_blas_wide)gemv_of(blas))(ROW_MAJOR, ta, m, n, 1, A, lda, x, 1, beta, y, 1);
    if (gemv_of(blas)) return ((gemv_blas_narrow)gemv_of(blas))(ROW_MAJOR, ta, (int)m, (int)n, 1, A, (int)lda, x, 1, beta, y, 1);
    product(blas, transpose, false, transpose ? n : m, 1, transpose ? m : n, A, lda, x, 1, beta, y, 1);
}
