package html

import (
	"fmt"
	"slices"
)

// Sizes of the pictures, in pixels.
const (
	boxWidth  = 196
	boxHeight = 66
	rowStep   = 90 // a box and the arrow below it
	padding   = 16
	titleRoom = 40 // for a frame's title
	dropsRoom = 10 // height for the drops below the lowest box, pixels
)

// wide draws a U: down through the sender's node, over the wire, up through
// the receiver's.
func (d drawing) wide() picture {
	const width = 960
	rows := max(len(d.path.Near), len(d.path.Far), (len(d.path.Between)+1)/2, 1)
	p := picture{Class: "wide", Width: width}
	column := boxWidth + 2*padding
	left, right := 0, width-column
	top := titleRoom
	// The pill of the workload stands above the first device.
	pill := 44
	floor := top + pill + rows*rowStep
	bottom := floor + dropsRoom
	y := func(fromBottom int) int { return floor - (fromBottom+1)*rowStep + (rowStep-boxHeight)/2 }
	p.Height = bottom + 2

	if len(d.path.Nodes) > 1 {
		p.Frames = append(p.Frames,
			frame{X: left + 1, Y: 1, W: column - 2, H: bottom - 2, Title: "node " + d.path.Nodes[0], Note: d.spent(0), Class: "node"},
			frame{X: right + 1, Y: 1, W: column - 2, H: bottom - 2, Title: "node " + d.path.Nodes[1], Note: d.spent(1), Class: "node"})
	} else {
		p.Frames = append(p.Frames, frame{X: 1, Y: 1, W: width - 2, H: bottom - 2, Title: "node " + d.path.Nodes[0], Note: d.spent(0), Class: "node"})
	}
	near := d.column(&p, d.path.Near, left+padding, y, rows, "sender", top)
	far := d.column(&p, d.path.Far, right+padding, y, rows, "receiver", top)
	d.across(&p, near, far, y)
	middle := (width) / 2
	if h := d.headline(); h != "" && rows > 2 {
		p.Texts = append(p.Texts, text{X: middle, Y: top + 60, Text: h, Class: "headline", Anchor: "middle"},
			text{X: middle, Y: top + 84, Text: d.row.ID, Class: "faint", Anchor: "middle"})
	}
	return p
}

// column draws one side, the endpoint on top, and returns the box that is
// joined to the middle.
func (d drawing) column(p *picture, stops []stop, x int, y func(int) int, rows int, role string, top int) box {
	// The sender's stops go down, the receiver's go up.
	down := slices.Clone(stops)
	if role == "receiver" {
		slices.Reverse(down)
	}
	first := y(len(down) - 1)
	pill := box{X: x, Y: top, W: boxWidth, H: 30, Name: role, Class: "pill"}.placed()
	if len(down) < rows {
		pill = box{X: x, Y: first - 44, W: boxWidth, H: 30, Name: role, Class: "pill"}.placed()
	}
	p.Boxes = append(p.Boxes, pill)
	previous := pill
	for i, s := range down {
		b := device(s, x, y(len(down)-1-i))
		p.Boxes = append(p.Boxes, b)
		p.Links = append(p.Links, d.vertical(previous, b, role == "receiver"))
		previous = b
	}
	return previous
}

// across draws what lies between, beside each other on the lowest row (two a
// row), and joins it to both sides.
func (d drawing) across(p *picture, near, far box, y func(int) int) {
	between := d.path.Between
	if len(between) == 0 {
		p.Links = append(p.Links, d.horizontal(near, far))
		return
	}
	lines := (len(between) + 1) / 2
	inner := p.Width - 2*(boxWidth+2*padding)
	space := (inner - 2*boxWidth) / 3
	var boxes []box
	for i, s := range between {
		x := boxWidth + 2*padding + space + (i%2)*(boxWidth+space)
		if len(between) == 1 {
			x = (p.Width - boxWidth) / 2
		}
		boxes = append(boxes, device(s, x, y(lines-1-i/2)))
	}
	if len(d.path.Nodes) > 1 {
		f := frame{X: boxWidth + 2*padding + space/2, Y: boxes[0].Y - titleRoom + 4, W: inner - space, Title: "fabric", Class: "wire"}
		f.H = boxes[len(boxes)-1].Y + boxHeight + 10 + dropsRoom - f.Y
		p.Frames = append(p.Frames, f)
	}
	p.Boxes = append(p.Boxes, boxes...)
	// With parallel links the order along the wire is a matter of each link.
	if lines == 1 {
		chain := append(append([]box{near}, boxes...), far)
		for i := 1; i < len(chain); i++ {
			p.Links = append(p.Links, d.horizontal(chain[i-1], chain[i]))
		}
		return
	}
	all := box{X: boxes[0].X, Y: near.Y, W: boxes[1].X + boxWidth - boxes[0].X, H: near.H}
	if len(d.path.Nodes) > 1 {
		all.X, all.W = all.X-space/2, all.W+space
	}
	p.Links = append(p.Links, d.horizontal(near, all), d.horizontal(all, far))
}

// tall draws all stops below each other.
func (d drawing) tall() picture {
	const width = 340
	p := picture{Class: "tall", Width: width}
	x := (width - boxWidth - 60) / 2
	y := 0
	var previous *box
	put := func(b box) {
		b.W = boxWidth + 60
		b = b.placed()
		p.Boxes = append(p.Boxes, b)
		if previous != nil {
			p.Links = append(p.Links, d.vertical(*previous, b, false))
		}
		previous = &b
		y = b.Y + b.H + rowStep - boxHeight
	}
	open := func(title, note, class string) int {
		p.Frames = append(p.Frames, frame{X: 1, Y: y + 1, W: width - 2, Title: title, Note: note, Class: class})
		y += titleRoom
		return len(p.Frames) - 1
	}
	shut := func(i int) {
		y -= rowStep - boxHeight - padding
		p.Frames[i].H = y - p.Frames[i].Y
		y += rowStep - boxHeight
	}
	many := len(d.path.Nodes) > 1
	f := open("node "+d.path.Nodes[0], d.spent(0), "node")
	put(box{X: x, Y: y, H: 30, Name: "sender", Class: "pill"})
	for _, s := range d.path.Near {
		put(device(s, x, y))
	}
	if many {
		shut(f)
	}
	if len(d.path.Between) > 0 {
		if many {
			f = open("fabric", "", "wire")
		}
		for _, s := range d.path.Between {
			put(device(s, x, y))
		}
		if many {
			shut(f)
		}
	}
	if many {
		f = open("node "+d.path.Nodes[1], d.spent(1), "node")
	}
	for _, s := range d.path.Far {
		put(device(s, x, y))
	}
	put(box{X: x, Y: y, H: 30, Name: "receiver", Class: "pill"})
	shut(f)
	p.Height = p.Frames[f].Y + p.Frames[f].H + 2
	return p
}

// device makes the box of a stop.
func device(s stop, x, y int) box {
	b := box{X: x, Y: y, W: boxWidth, H: boxHeight, Name: s.Name, Role: s.Role, Class: "device " + roleClass(s.Role)}
	for _, line := range s.Lines() {
		b.Lines = append(b.Lines, text{Text: line})
	}
	if n := s.Drops(); n > 0 {
		b.Drops = amount(n, "dropped")
		b.Class += " dropping"
	}
	return b.placed()
}

// roleClass keeps what is not a known role out of the page's classes.
func roleClass(role string) string {
	if slices.Contains([]string{"endpoint", "vif", "bridge", "tunnel", "fabric", "port"}, role) {
		return role
	}
	return ""
}

// placed sets where the writing goes.
func (b box) placed() box {
	b.NX, b.RX, b.NY = b.X+12, b.X+b.W-12, b.Y+20
	if b.Class == "pill" {
		b.NX = b.X + b.W/2
	}
	for i := range b.Lines {
		b.Lines[i].X, b.Lines[i].Y = b.X+12, b.Y+39+17*i
	}
	b.DX, b.DY = b.X+b.W-4, b.Y+b.H+15
	return b
}

// vertical joins a box to the one below it; up tells that the receiver is
// above.
func (d drawing) vertical(from, to box, up bool) link {
	x, y1, y2 := from.X+from.W/2, from.Y+from.H+3, to.Y-3
	l := link{Path: fmt.Sprintf("M%d %dV%d", x, y1, y2)}
	below, above := d.forward, d.backward
	if up {
		below, above = above, below
	}
	if below {
		l.Heads = append(l.Heads, fmt.Sprintf("M%d %dl-5 -7h10z", x, y2))
	}
	if above {
		l.Heads = append(l.Heads, fmt.Sprintf("M%d %dl-5 7h10z", x, y1))
	}
	return l
}

// horizontal joins the right edge of one box to the left edge of the next.
func (d drawing) horizontal(from, to box) link {
	y1, y2 := from.Y+from.H/2, to.Y+to.H/2
	x1, x2 := from.X+from.W+3, to.X-3
	l := link{Path: fmt.Sprintf("M%d %dH%d", x1, y1, x2)}
	if y1 != y2 {
		l.Path = fmt.Sprintf("M%d %dH%dV%dH%d", x1, y1, (x1+x2)/2, y2, x2)
	}
	if d.forward {
		l.Heads = append(l.Heads, fmt.Sprintf("M%d %dl-7 -5v10z", x2, y2))
	}
	if d.backward {
		l.Heads = append(l.Heads, fmt.Sprintf("M%d %dl7 -5v10z", x1, y1))
	}
	return l
}
