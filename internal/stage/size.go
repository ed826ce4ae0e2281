package stage

import "reflect"

// sizeOf is about how much memory a value takes with all that it names, however deep; what is named twice counts once.
func sizeOf(v any) int {
	r := reflect.ValueOf(v)
	return int(r.Type().Size()) + indirect(r, map[any]bool{})
}

const (
	perEntry = 32 // what a map keeps for an entry, beside its key and value
	perAlloc = 16 // what an allocation takes beside its contents, about
)

// indirect returns what a value names outside of its own bytes.
func indirect(v reflect.Value, seen map[any]bool) (n int) {
	switch v.Kind() {
	case reflect.String:
		if v.Len() > 0 {
			n = v.Len() + perAlloc
		}
	case reflect.Pointer:
		if v.IsNil() || seen[v.Pointer()] {
			return 0
		}
		seen[v.Pointer()] = true
		n = int(v.Type().Elem().Size()) + perAlloc + indirect(v.Elem(), seen)
	case reflect.Interface:
		if !v.IsNil() {
			n = int(v.Elem().Type().Size()) + indirect(v.Elem(), seen)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			n += indirect(v.Field(i), seen)
		}
	case reflect.Slice:
		n = v.Cap() * int(v.Type().Elem().Size())
		for i := range v.Len() {
			n += indirect(v.Index(i), seen)
		}
	case reflect.Array:
		for i := range v.Len() {
			n += indirect(v.Index(i), seen)
		}
	case reflect.Map:
		entry := int(v.Type().Key().Size()+v.Type().Elem().Size()) + perEntry
		for it := v.MapRange(); it.Next(); {
			n += entry + indirect(it.Key(), seen) + indirect(it.Value(), seen)
		}
	}
	return n
}
