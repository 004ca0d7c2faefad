// The parts of Apache ECharts that the report draws with, and nothing else.
export { getInstanceByDom, init, version } from 'echarts/core';
import { use } from 'echarts/core';
import { CustomChart, LineChart } from 'echarts/charts';
import { GridComponent, LegendComponent, MarkAreaComponent, TooltipComponent } from 'echarts/components';
import { SVGRenderer } from 'echarts/renderers';

use([CustomChart, LineChart, GridComponent, LegendComponent, MarkAreaComponent, TooltipComponent, SVGRenderer]);
