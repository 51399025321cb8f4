from numpy import float64
from sparsejit.backends.support import float_max


def long(
    a_rather_long_name_a,
    a_rather_long_name_b,
    a_rather_long_name_c,
    a_rather_long_name_d,
    a_rather_long_name_e,
    a_rather_long_name_f,
):
    for i in range(9):
        s = (
            (
                a_rather_long_name_a[i]
                + a_rather_long_name_b[i + 12345] * a_rather_long_name_b[i]
                + a_rather_long_name_c[i + 12345] * a_rather_long_name_c[i]
                + a_rather_long_name_d[i + 12345] * a_rather_long_name_d[i]
                + a_rather_long_name_e[i + 12345] * a_rather_long_name_e[i]
                + a_rather_long_name_f[i + 12345] * a_rather_long_name_f[i]
            )
            if (
                (
                    a_rather_long_name_a[i]
                    + a_rather_long_name_b[i + 12345] * a_rather_long_name_b[i]
                    + a_rather_long_name_c[i + 12345] * a_rather_long_name_c[i]
                    + a_rather_long_name_d[i + 12345] * a_rather_long_name_d[i]
                    + a_rather_long_name_e[i + 12345] * a_rather_long_name_e[i]
                    + a_rather_long_name_f[i + 12345] * a_rather_long_name_f[i]
                )
                < 0.5
            )
            else float_max(
                (
                    a_rather_long_name_a[i]
                    + a_rather_long_name_b[i + 12345] * a_rather_long_name_b[i]
                    + a_rather_long_name_c[i + 12345] * a_rather_long_name_c[i]
                    + a_rather_long_name_d[i + 12345] * a_rather_long_name_d[i]
                    + a_rather_long_name_e[i + 12345] * a_rather_long_name_e[i]
                    + a_rather_long_name_f[i + 12345] * a_rather_long_name_f[i]
                ),
                float64(1.0),
            )
        )
        if (
            (
                a_rather_long_name_a[i]
                + a_rather_long_name_b[i + 12345] * a_rather_long_name_b[i]
                + a_rather_long_name_c[i + 12345] * a_rather_long_name_c[i]
                + a_rather_long_name_d[i + 12345] * a_rather_long_name_d[i]
                + a_rather_long_name_e[i + 12345] * a_rather_long_name_e[i]
                + a_rather_long_name_f[i + 12345] * a_rather_long_name_f[i]
                + (
                    a_rather_long_name_a[i]
                    + a_rather_long_name_b[i + 12345] * a_rather_long_name_b[i]
                    + a_rather_long_name_c[i + 12345] * a_rather_long_name_c[i]
                    + a_rather_long_name_d[i + 12345] * a_rather_long_name_d[i]
                    + a_rather_long_name_e[i + 12345] * a_rather_long_name_e[i]
                    + a_rather_long_name_f[i + 12345] * a_rather_long_name_f[i]
                )
            )
            < (
                (
                    a_rather_long_name_a[i]
                    + a_rather_long_name_b[i + 12345] * a_rather_long_name_b[i]
                    + a_rather_long_name_c[i + 12345] * a_rather_long_name_c[i]
                    + a_rather_long_name_d[i + 12345] * a_rather_long_name_d[i]
                    + a_rather_long_name_e[i + 12345] * a_rather_long_name_e[i]
                    + a_rather_long_name_f[i + 12345] * a_rather_long_name_f[i]
                )
                * 3.0
            )
        ):
            a_rather_long_name_a[i] = s
    return ()
