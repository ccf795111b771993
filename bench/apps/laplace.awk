# A system of linear equations in the form that MUMPS's examples read: five points of
# Laplace's operator on a square of `points` by `points`, and the right-hand side for
# which every unknown is 1.
BEGIN {
	n = points * points
	print n, ":N"
	print n + 4 * points * (points - 1), ":NZ"
	for (i = 0; i < points; i++)
		for (j = 0; j < points; j++) {
			k = i * points + j + 1
			side[k] = 4.5
			print k, k, 4.5
			if (j > 0) entry(k, k - 1)
			if (j < points - 1) entry(k, k + 1)
			if (i > 0) entry(k, k - points)
			if (i < points - 1) entry(k, k + points)
		}
	for (k = 1; k <= n; k++) print side[k]
}

function entry(row, column) {
	print row, column, "-1.0"
	side[row] -= 1
}
