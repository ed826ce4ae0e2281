package api_test

import (
	"fmt"
	"strings"
	"testing"

	"parley/internal/billing"
	"parley/internal/parley"
	"parley/internal/store"
)

// TestGroups: folders and labels are made, changed and deleted on both of their paths; assistants are filed in them and
// found by them.
func TestGroups(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		other := h.stranger()
		for kind, title := range map[string]string{"folder": "Folder", "label": "Label"} {
			list := "/user/" + kind + "s"
			if got := h.get(list, status(200)).json(); fmt.Sprintf("%v %v %v", got["data"], got["total"], got["per_page"]) != "[] 0 15" {
				t.Errorf("none: %v", got)
			}
			made := h.post("/user/"+kind, map[string]any{"name": " Sales ", "color": "blue"}, status(201)).json()
			g := made["data"].(map[string]any)
			if made["message"] != title+" created successfully" || g["name"] != "Sales" || g["color"] != "blue" ||
				fmt.Sprint(g["assistants_count"]) != "0" {
				t.Errorf("made %v", made)
			}
			second := h.post(list, map[string]any{"name": "Support"}, status(201)).json()["data"].(map[string]any)
			if second["color"] != nil {
				t.Errorf("colour %v", second["color"])
			}
			h.post(list, map[string]any{"name": "Sales"}, status(422)).says("name", "The name has already been taken.")
			h.put(fmt.Sprintf("%s/%d", list, id(second)), map[string]any{"name": "Sales"}, status(422)).
				says("name", "The name has already been taken.")
			for _, res := range []*answer{h.post(list, map[string]any{"name": "Sales", "color": "black"}, status(422)),
				h.put(fmt.Sprintf("%s/%d", list, id(second)), map[string]any{"name": "Sales", "color": "black"}, status(422))} {
				res.fails("name", "color")
			}
			h.put(fmt.Sprintf("%s/%d", list, id(g)), map[string]any{"name": "Sales", "color": "black"}, status(422)).fails("color")
			other.post(list, map[string]any{"name": "Sales"}, status(201))
			h.post(list, map[string]any{"name": strings.Repeat("é", 256), "color": "black"}, status(422)).fails("name", "color")
			h.post(list, map[string]any{"name": strings.Repeat("é", 255)}, status(201))
			h.post(list, nil, status(422)).says("name", "The name field is required.")
			one := fmt.Sprintf("/user/%s/%d", kind, id(g))
			for _, at := range []string{one, fmt.Sprintf("%s/%d", list, id(g))} {
				got := h.put(at, map[string]any{"name": "Sales", "color": nil}, status(200)).json()
				if got["message"] != title+" updated successfully" || got["data"].(map[string]any)["color"] != nil {
					t.Errorf("changed %v", got)
				}
				other.put(at, map[string]any{"name": "x"}, status(404)).is(`{"message":"` + title + ` not found"}`)
				other.delete(at, status(404)).is(`{"message":"` + title + ` not found"}`)
			}
			rows := h.get(list+"?per_page=2", status(200)).rows()
			if len(rows) != 2 || id(rows[1]) != id(second) {
				t.Errorf("not newest first: %v", rows)
			}
			h.delete(fmt.Sprintf("%s/%d", list, id(second)), status(200)).is(`{"message":"` + title + ` deleted successfully"}`)
			h.delete(fmt.Sprintf("%s/%d", list, id(second)), status(404))
		}
		// A folder is no label.
		folder := id(h.post("/user/folder", map[string]any{"name": "Night"}, status(201)).json()["data"].(map[string]any))
		h.put(fmt.Sprintf("/user/label/%d", folder), map[string]any{"name": "x"}, status(404))
		foreign := id(other.post("/user/label", map[string]any{"name": "x"}, status(201)).json()["data"].(map[string]any))
		var labels []int64
		for _, name := range []string{"a", "b"} {
			labels = append(labels, id(h.post("/user/label", map[string]any{"name": name}, status(201)).json()["data"].(map[string]any)))
		}
		h.post("/user/assistant", with(h.assistantBody(), map[string]any{"folder_id": labels[0], "label_ids": []int64{labels[1], foreign}}),
			status(422)).fails("folder_id", "label_ids.1")
		h.post("/user/assistant", with(h.assistantBody(), map[string]any{"label_ids": []int64{labels[1], labels[1]}}), status(422)).
			fails("label_ids.1")
		a := h.assistant(map[string]any{"folder_id": fmt.Sprint(folder), "label_ids": []int64{labels[1], labels[0]}})
		plain := h.assistant(nil)
		at := fmt.Sprintf("/user/assistant/%d", a)
		whole := h.get(at, status(200)).json()
		if fmt.Sprint(whole["folder_id"]) != fmt.Sprint(folder) || fmt.Sprint(whole["label_ids"]) != fmt.Sprint(labels) {
			t.Errorf("filed in %v, %v", whole["folder_id"], whole["label_ids"])
		}
		for query, want := range map[string]string{"": fmt.Sprint([]int64{a, plain}), "?folder_id=" + fmt.Sprint(folder): fmt.Sprint([]int64{a}),
			"?label_id=" + fmt.Sprint(labels[0]): fmt.Sprint([]int64{a}), "?type=outbound&label_id=" + fmt.Sprint(labels[0]): "[]"} {
			got := []int64{}
			for _, row := range h.get("/user/assistants/get"+query, status(200)).rows() {
				got = append(got, id(row))
			}
			if fmt.Sprint(got) != want {
				t.Errorf("%q lists %v, want %s", query, got, want)
			}
		}
		h.get(fmt.Sprintf("/user/assistants/get?label_id=%d", foreign), status(404)).is(`{"message":"Label not found"}`)
		h.get(fmt.Sprintf("/user/assistants/get?folder_id=%d", labels[0]), status(404)).is(`{"message":"Folder not found"}`)
		if rows := h.get("/user/folders", status(200)).rows(); fmt.Sprint(rows[0]["assistants_count"]) != "1" {
			t.Errorf("the folder counts %v", rows[0])
		}
		// Filing changes nothing about how the assistant talks: no version, no draft in its way.
		if got := h.put(at, whole, status(200)).json()["data"].(map[string]any); fmt.Sprint(got) != fmt.Sprint(whole) {
			t.Errorf("sent back: %v, was %v", got, whole)
		}
		moved := h.put(at, map[string]any{"folder_id": nil, "label_ids": []int64{labels[1]}}, status(200)).json()["data"].(map[string]any)
		if moved["folder_id"] != nil || fmt.Sprint(moved["label_ids"]) != fmt.Sprint(labels[1:]) || moved["updated_at"] != whole["updated_at"] {
			t.Errorf("moved: %v", moved)
		}
		if got := h.get(fmt.Sprintf("/user/assistants/%d/versions", a), status(200)).json(); fmt.Sprint(got["total"]) != "1" {
			t.Errorf("%v versions", got["total"])
		}
		h.put(at, map[string]any{"label_ids": []int64{foreign}, "name": "x"}, status(422)).fails("label_ids.0")
		h.put(at, map[string]any{"folder_id": folder, "name": "Both"}, status(200))
		// What is deleted leaves its assistants.
		h.delete(fmt.Sprintf("/user/folder/%d", folder), status(200))
		h.delete(fmt.Sprintf("/user/labels/%d", labels[1]), status(200))
		got := h.get(at, status(200)).json()
		if got["folder_id"] != nil || fmt.Sprint(got["label_ids"]) != "[]" || got["name"] != "Both" {
			t.Errorf("after the deletion: %v, %v", got["folder_id"], got["label_ids"])
		}
		h.put(at, map[string]any{"label_ids": labels[:1]}, status(200))
		h.delete(at, status(200))
		if rows := h.get("/user/labels", status(200)).rows(); fmt.Sprint(rows[0]["assistants_count"]) != "0" {
			t.Errorf("a deleted assistant counts: %v", rows)
		}
	})
}

// A plan limits how many there are.
func TestGroupLimits(t *testing.T) {
	eachPlanned(t, func(t *testing.T, db *store.DB, plan func(*billing.Prices)) {
		h, prices := open(t, db, nil), usual()
		few := prices.Plan(parley.DefaultPlan)
		few.Folders, few.Labels = 1, 2
		prices.Plans[parley.DefaultPlan] = few
		plan(prices)
		for kind, most := range map[string]int{"folder": 1, "label": 2} {
			for i := range most {
				h.post("/user/"+kind, map[string]any{"name": fmt.Sprint(i)}, status(201))
			}
			got := h.post("/user/"+kind+"s", map[string]any{"name": "x"}, status(403)).json()["message"]
			if !strings.HasPrefix(got.(string), fmt.Sprintf("Your plan allows %d %ss of assistants.", most, kind)) {
				t.Errorf("%v", got)
			}
		}
	})
}
