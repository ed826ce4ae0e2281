package storetest

// Cluster is the address, without a database's name, of the PostgreSQL server that ends with this process: for
// programs that measure.
func Cluster() (string, error) { return cluster() }
