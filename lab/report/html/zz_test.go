package html
import ("testing";"os";"os/exec";"fmt";"bytes";"time"
"github.com/chromedp/chromedp"
"github.com/chromedp/cdproto/emulation"
"github.com/chromedp/cdproto/page"
"context"
"windtunnel/lab/report";"windtunnel/lab/report/reporttest")
func written(t testing.TB, r *report.Report) []byte { var b bytes.Buffer; if err:=Write(&b,r);err!=nil {t.Fatal(err)}; return b.Bytes() }
func TestZZ(t *testing.T){ run,plan,s:=reporttest.Sample(); r:=report.Build(run,plan,s)
 if os.Getenv("RJSON")!="" { }
 p:=browse(t,r,1280)
 time.Sleep(500*time.Millisecond)
 shot:=func(n string){ var b []byte; p.do(t,chromedp.FullScreenshot(&b,100)); os.WriteFile("/tmp/wtdev/"+n+".png",b,0o644)}
 pr,rq:=p.seen(); fmt.Println(pr,rq)
 shot("light")
 p.do(t,emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name:"prefers-color-scheme",Value:"dark"}}),chromedp.Sleep(300*time.Millisecond))
 shot("dark")
 p.do(t, chromedp.ActionFunc(func(ctx context.Context) error { d,_,err:=page.PrintToPDF().WithPrintBackground(true).Do(ctx); os.WriteFile("/tmp/wtdev/p.pdf",d,0o644); return err}))
 p.do(t,emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name:"prefers-color-scheme",Value:"light"}}),chromedp.EmulateViewport(400,900),chromedp.Sleep(500*time.Millisecond))
 shot("narrow")
 fmt.Println(eval[int](t,p,"document.documentElement.scrollWidth"))
 pr,rq=p.seen(); fmt.Println(pr,rq)
 exec.Command("sh","-c","cd /tmp/wtdev && rm -f p-*.png; pdftoppm -r 60 -png p.pdf p").Run()
}
