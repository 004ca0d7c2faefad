package html

import (
	"bytes"
"image"
"image/png"
	"fmt"
	"github.com/chromedp/chromedp"
	"os"
	"os/exec"
	"testing"
	"time"
	"windtunnel/lab/report"
	"windtunnel/lab/report/reporttest"
)

func written(t testing.TB, r *report.Report) []byte {
	var b bytes.Buffer
	if err := Write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
func TestZZ(t *testing.T) {
	run_, plan, s := reporttest.Sample()
	r := report.Build(run_, plan, s)
	p := browse(t, r, 1280)
	time.Sleep(500 * time.Millisecond)
	shot := func(n string) {
		b := run(t, p, chromedp.FullScreenshot(100))
		os.WriteFile("/tmp/wtdev/"+n+".png", b, 0o644)
	}
	pr, rq := p.seen()
	fmt.Println(pr, rq)
	shot("light")
	p.do(t, scheme("dark"))
	time.Sleep(300 * time.Millisecond)
	shot("dark")
	d := run(t, p, chromedp.PrintToPDF(chromedp.PDFPaper(chromedp.PaperA4), chromedp.PDFPrintBackground()))
	os.WriteFile("/tmp/wtdev/p.pdf", d, 0o644)
	p.do(t, scheme("light"), chromedp.EmulateViewport(400, 900))
	time.Sleep(500 * time.Millisecond)
	shot("narrow")
	fmt.Println(eval[int](t, p, "document.documentElement.scrollWidth"))
	pr, rq = p.seen()
	fmt.Println(pr, rq)
	exec.Command("sh", "-c", "cd /tmp/wtdev && rm -f p-*.png; pdftoppm -r 60 -png p.pdf p").Run()
}
func cut(n string, step int) { f,err:=os.Open("/tmp/wtdev/"+n+".png"); if err!=nil {return}; im,_:=png.Decode(f); f.Close(); b:=im.Bounds(); k:=0
 for y:=0;y<b.Dy();y+=step { r:=image.Rect(0,y,b.Dx(),min(b.Dy(),y+step)); s:=im.(interface{SubImage(image.Rectangle) image.Image}).SubImage(r); o,_:=os.Create(fmt.Sprintf("/tmp/wtdev/%s%d.png",n,k)); png.Encode(o,s); o.Close(); k++}; fmt.Println(n,b.Dx(),b.Dy(),k) }
