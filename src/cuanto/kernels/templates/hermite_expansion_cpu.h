// E_t^{ij} along one axis (Helgaker, Jorgensen, Olsen, eqs. 9.5.6-9.5.7), [i][j][t]
template <class T> static void expansion(int la, int lb, T PA, T PB, T h, T* E) {
    const int n = la + lb + 1;
    for (int i = 0; i <= la; ++i)
        for (int j = 0; j <= lb; ++j) {
            T* target = E + (i * (lb + 1) + j) * n;
            if (i + j == 0) {
                target[0] = h * REAL(0) + REAL(1);
                continue;
            }
            const T* from = i > 0 ? target - (lb + 1) * n : target - n;
            const T shift = i > 0 ? PA : PB;
            for (int t = 0; t <= i + j; ++t) {
                T sum = h * REAL(0);
                if (t > 0) sum = sum + h * from[t - 1];
                if (t < i + j) sum = sum + shift * from[t];
                if (t + 1 < i + j) sum = sum + REAL(t + 1) * from[t + 1];
                target[t] = sum;
            }
        }
}
