// Keys that sort pairs as bras of each class, large bounds first. A derivative of Gaussians of exponent p is larger by about
// sqrt(p) times the root of its momentum: `raised` has the bounds of derivatives of the order `higher`.
KERNEL(THREADS) ENTRY(PARAMETERS) {
    FOR_ITEMS(pair) {
        const int c = j_class(classes, CLASS_PAIR, pair);
        const double order = double(classes[CLASS_FIELDS * c + CLASS_ORDER]);
        double size = bound[pair];
        for (int n = 0; n < higher; ++n) size *= 1 + 2 * geometry[4 * pair] * vsqrt(order + 1);
        raised[pair] = size;
        key[pair] = j_key(c, 1023 - j_power(size), along[pair]);
    }
}
