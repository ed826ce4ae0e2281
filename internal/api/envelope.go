package api

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"parley/internal/store"
)

// Paginated is the contract's envelope of a list (2.1).
type Paginated[T any] struct {
	CurrentPage  int        `json:"current_page"`
	Data         []T        `json:"data"`
	FirstPageURL string     `json:"first_page_url"`
	From         *int       `json:"from"`
	LastPage     int        `json:"last_page"`
	LastPageURL  string     `json:"last_page_url"`
	Links        []PageLink `json:"links"`
	NextPageURL  *string    `json:"next_page_url"`
	Path         string     `json:"path"`
	PerPage      int        `json:"per_page"`
	PrevPageURL  *string    `json:"prev_page_url"`
	To           *int       `json:"to"`
	Total        int        `json:"total"`
}

// PageLink is one link of a pager.
type PageLink struct {
	URL    *string `json:"url"`
	Label  string  `json:"label"`
	Active bool    `json:"active"`
}

// pageQuery are the parameters of a list of 15 rows a page.
type pageQuery struct {
	PerPage int `query:"per_page" minimum:"1" maximum:"100" doc:"Rows a page, 1 to 100 (15)."`
	Page    int `query:"page" minimum:"1" maximum:"2147483648" doc:"Page number from 1."`
}

// page is the part of the list that is asked for.
func (q pageQuery) page(size int) store.Page {
	p := store.Page{Number: q.Page, Size: q.PerPage}
	if p.Number == 0 {
		p.Number = 1
	}
	if p.Size == 0 {
		p.Size = size
	}
	return p
}

// envelope puts rows into the contract's shape.
func envelope[T any](a *API, r *http.Request, rows []T, total int, p store.Page) Paginated[T] {
	if rows == nil {
		rows = []T{}
	}
	last := max(1, (total+p.Size-1)/p.Size)
	path := a.baseURL(r) + r.URL.Path
	others := r.URL.Query()
	others.Del("page")
	at := func(n int) *string {
		if n < 1 || n > last {
			return nil
		}
		s := path + "?" + withPage(others, n)
		return &s
	}
	e := Paginated[T]{CurrentPage: p.Number, Data: rows, FirstPageURL: *at(1), LastPage: last,
		LastPageURL: *at(last), Path: path,
		PerPage: p.Size, Total: total, NextPageURL: at(p.Number + 1), PrevPageURL: at(p.Number - 1)}
	if p.Number > last { // beyond the end there is no next page, and the one before is the last
		e.PrevPageURL = at(last)
	}
	if len(rows) > 0 {
		from := (p.Number-1)*p.Size + 1
		to := from + len(rows) - 1
		e.From, e.To = &from, &to
	}
	e.Links = append(e.Links, PageLink{URL: e.PrevPageURL, Label: "&laquo; Previous"})
	before := 0
	for _, n := range pagesShown(p.Number, last) {
		if n != before+1 {
			e.Links = append(e.Links, PageLink{Label: "..."})
		}
		e.Links = append(e.Links, PageLink{URL: at(n), Label: strconv.Itoa(n), Active: n == p.Number})
		before = n
	}
	e.Links = append(e.Links, PageLink{URL: e.NextPageURL, Label: "Next &raquo;"})
	return e
}

// pagesShown are all pages up to ten; beyond, the first two, those around the current one, and the last two.
func pagesShown(current, last int) (list []int) {
	if last <= 10 {
		for n := 1; n <= last; n++ {
			list = append(list, n)
		}
		return list
	}
	list = []int{1, 2, last - 1, last}
	for n := max(1, current-3); n <= min(last, current+3); n++ {
		list = append(list, n)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func withPage(others url.Values, n int) string {
	page := "page=" + strconv.Itoa(n)
	if len(others) == 0 {
		return page
	}
	return others.Encode() + "&" + page
}

// baseURL is what links to this server start with: PUBLIC_URL, or the address that the client used.
func (a *API) baseURL(r *http.Request) string { return a.Front.Base(r) }
