package html

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/drawings"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/reporttest"
)

// picture returns the picture, and its elements by name.
func picture(t *testing.T, draw func(io.Writer, string, []document.Panel) error, r *model.Report) (string, map[string]int) {
	t.Helper()
	var b bytes.Buffer
	must.Succeed(t, draw(&b, r.Run.Title, drawings.Panels(r)))
	count := make(map[string]int)
	for d := xml.NewDecoder(bytes.NewReader(b.Bytes())); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return b.String(), count
		}
		if err != nil {
			t.Fatalf("the picture is not XML: %v\n%s", err, &b)
		}
		if e, ok := token.(xml.StartElement); ok {
			count[e.Name.Local]++
		}
	}
}

func TestThePictureHasTheFiguresOfTheChart(t *testing.T) {
	r := reporttest.Quick()
	text, count := picture(t, SVG, r)
	// Four streams with six trials each; three of them have a receiver.
	if count["rect"] != 4+7 || count["circle"] != 6*(4+7) {
		t.Errorf("the picture has %v, want 11 bars and 66 circles", count)
	}
	for _, want := range []string{">8.63<", ">bridge-colocated<", ">macvlan: skipped<", ">Throughput, Gbit/s<", `fill="#0072b2"`, `fill="#1b2430"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the picture lacks %s", want)
		}
	}
	dark, _ := picture(t, DarkSVG, r)
	if !strings.Contains(dark, `fill="#4aa3e0"`) || strings.Contains(dark, "#1b2430") {
		t.Error("the dark picture has the light colours")
	}
}

func TestHostileNamesStayTextInThePicture(t *testing.T) {
	r := reporttest.Quick()
	r.Run.Title, r.Scenarios[0].ID = `</title><script>`, `"><img src=x>`
	if text, count := picture(t, SVG, r); count["script"]+count["img"] > 0 || strings.Contains(text, "<img") {
		t.Errorf("a name became an element: %v", count)
	}
}

func TestThePictureOfARunWithoutFiguresSaysSo(t *testing.T) {
	if text, count := picture(t, SVG, &model.Report{}); !strings.Contains(text, "has no figures of throughput and CPU") || count["rect"] > 0 {
		t.Errorf("the picture without figures is %s, want one that says so, without bars", text)
	}
}

func TestTicksAreRoundAndFew(t *testing.T) {
	for end, want := range map[float64]float64{100: 20, 13.3: 5, 6: 1, 0.7: 0.2, 1200: 200, 31: 10} {
		if got := tick(end); math.Abs(got/want-1) > 1e-9 {
			t.Errorf("an axis up to %v has the step %v, want %v", end, got, want)
		}
	}
}
