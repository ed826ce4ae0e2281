package pdf
import ("testing";"os";"fmt")
func TestYY(t *testing.T){
 b,_:=os.ReadFile(os.Getenv("F")); f,err:=open(b); if err!=nil {t.Fatal(err)}
 seen:=map[string]bool{}
 ls,_:=f.pages(100)
 for _,l:=range ls { for k,v:=range f.dict(l.resources["Font"]) { d:=f.dict(v); n:=string(f.name(d["BaseFont"])); if seen[n]{continue}; seen[n]=true
  fd:=f.dict(d["FontDescriptor"]); ft:=f.font(d); _,tu:=f.get(d["ToUnicode"]).(stream)
  fmt.Println(k,n,f.name(d["Subtype"]),"enc",f.get(d["Encoding"]),"tu",tu,"ff",fd["FontFile"]!=nil,"ff3",fd["FontFile3"]!=nil,"names",ft.names[10:16]) } }
}
