// Package cluster is the simulation of many nodes: tests alone. The nodes' own code (signs of life, the care of calls, the planner of
// campaigns with its claims, admission, the end of calls) runs for each of some tens of nodes against simulated time and a model of
// PostgreSQL: SQLite does what a statement says, the model what it costs, with costs that were measured on PostgreSQL.
package cluster
