// Package call is the life of calls: making and taking them, which are live, how each ends, what it costs and what is read out of it.
package call
